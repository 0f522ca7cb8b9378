#!/bin/sh
# Makes dist/tkperf_VERSION_MACHINE.deb for the release of Debian or Ubuntu on which the script runs.
#   SOURCE_DATE_EPOCH, EXTRAS, DEBFULLNAME, DEBEMAIL: see packaging/README.md
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh deb
exec sh scripts/system-python.sh scripts/deb.py "${1:-dist}"
