#!/bin/sh
# Everything the project checks: format, lint, layers, types, tests, the lab's core cases.
# With arguments: only pytest, with these.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh test
sh scripts/lint.sh
[ $# -eq 0 ] || exec .venv/bin/pytest "$@"
.venv/bin/pytest
exec sh scripts/lab.sh core
