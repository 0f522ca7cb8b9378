#!/bin/sh
# Runs one of our scripts with the Python that tkperf is to use: $PYTHON, else the system's, else the
# one on the PATH.
#   scripts/system-python.sh SCRIPT [ARGUMENTS]
set -eu
for python in ${PYTHON:+"$PYTHON"} /usr/bin/python3 /usr/local/bin/python3 python3; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        # -B: no bytecode beside the sources; root's could not be removed by their owner.
        exec "$python" -B "$@"
    fi
    [ -z "${PYTHON:-}" ] || break
done
echo "tkperf needs Python 3.11 or newer; name one: make ... PYTHON=/path/to/python3" >&2
exit 1
