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
sh scripts/lint.sh
# By files, in the order of tests/conftest.py: most of the time is spent waiting for fio. No test may mind what else the host does.
nice .venv/bin/pytest -n 4 --dist loadfile --no-loadscope-reorder
exec sh scripts/lab.sh core
