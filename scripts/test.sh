#!/bin/sh
# Everything the project checks: format, lint, layers, types, tests, the lab's core cases.
# With arguments: only pytest, with these.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh test
sh scripts/lint.sh
[ $# -eq 0 ] || exec .venv/bin/pytest "$@"
# By files, two at a time: most of them wait for fio. None may mind what else the host does.
.venv/bin/pytest -n 2 --dist loadfile
exec sh scripts/lab.sh core
