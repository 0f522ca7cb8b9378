#!/bin/sh
# Runs one of tkperf's scripts with the first suitable Python: $PYTHON, the Python of the system, or the
# Python on the PATH.
#   scripts/system-python.sh SCRIPT [ARGUMENTS]
set -eu
for python in ${PYTHON:+"$PYTHON"} /usr/bin/python3 /usr/local/bin/python3 python3; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        # -B writes no bytecode next to the sources, because their owner could not remove files of root.
        exec "$python" -B "$@"
    fi
    [ -z "${PYTHON:-}" ] || break
done
echo "tkperf needs Python 3.11 or newer; name one: make ... PYTHON=/path/to/python3" >&2
exit 1
