#!/bin/sh
# dist/tkperf-VERSION-linux-MACHINE.tar.gz: tkperf with a Python of its own. Environment: PYTHON, EXTRAS.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh archive
exec sh scripts/system-python.sh scripts/archive.py "${1:-dist}"
