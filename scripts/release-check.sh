#!/bin/sh
# Runs the check list of a release, which scripts/release_check.py describes. This takes hours.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh test
exec .venv/bin/python -B scripts/release_check.py
