#!/bin/sh
# Makes dist/tkperf-VERSION-linux-MACHINE.tar.gz, which contains tkperf and a separate Python.
# Environment: PYTHON, EXTRAS.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh archive
exec sh scripts/system-python.sh scripts/archive.py "${1:-dist}"
