#!/bin/sh
# Everything the project checks: format, lint, layers, types, tests.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh test
sh scripts/lint.sh
exec .venv/bin/pytest "$@"
