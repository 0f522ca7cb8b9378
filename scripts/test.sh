#!/bin/sh
# Runs all checks of the project: format, lint, layers, types, tests, and the core cases of the lab.
# With arguments, the script runs only pytest with these arguments.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh test
if [ $# -gt 0 ]; then
    sh scripts/lint.sh
    exec .venv/bin/pytest "$@"
fi
exec .venv/bin/python scripts/all_tests.py
