#!/bin/sh
# Runs the lab: test cases with real kernel drivers in a virtual machine (tests/lab/README.md).
#   scripts/lab.sh core|full [pytest options]
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh test
exec .venv/bin/python -m tests.lab.run "${@:-core}"
