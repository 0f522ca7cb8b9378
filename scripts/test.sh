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
# All at once, on however few CPUs: most of the time is spent waiting for fio. No test may mind what else the host does.
lab_output=$(mktemp)
sh scripts/lab.sh core >"$lab_output" 2>&1 &
lab=$!
trap 'kill $lab 2>/dev/null || true; rm -f "$lab_output"' EXIT
trap 'exit 130' INT TERM
sh scripts/lint.sh
status=0
# By files, in the order of tests/conftest.py.
nice .venv/bin/pytest -n 3 --dist loadfile --no-loadscope-reorder || status=$?
wait $lab || status=$?
cat "$lab_output"
exit $status
