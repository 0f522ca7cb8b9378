#!/bin/sh
# dist/tkperf-VERSION-linux-MACHINE.tar.gz: tkperf with a Python of its own. Environment: PYTHON, EXTRAS.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh archive
for python in ${PYTHON:+"$PYTHON"} /usr/bin/python3 /usr/local/bin/python3 python3; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        exec "$python" -B scripts/archive.py "${1:-dist}"
    fi
done
echo "archive: needs Python 3.11 or newer; name one: make archive PYTHON=/path/to/python3" >&2
exit 1
