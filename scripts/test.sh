#!/bin/sh
# Everything the project checks: format, lint, layers, types, tests, the lab's core cases.
# With arguments: only pytest, with these.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh test
if [ $# -gt 0 ]; then
    sh scripts/lint.sh
    exec .venv/bin/pytest "$@"
fi
exec .venv/bin/python scripts/all_tests.py
