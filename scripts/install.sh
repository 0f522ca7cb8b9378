#!/bin/sh
# A self-contained tkperf for all users, and taking it away again. make gives the environment:
#   PREFIX=/usr/local DESTDIR= PYTHON= EXTRAS=report sh scripts/install.sh install|uninstall
set -eu
cd "$(dirname "$0")/.."
# A packager's package says what it needs; else what tkperf calls should be there.
if [ "$1" = install ] && [ -z "${DESTDIR:-}" ]; then
    sh scripts/setup.sh system ||
        echo "install: going on; until these are installed tkperf measures simulated drives only" >&2
fi
for python in ${PYTHON:+"$PYTHON"} /usr/bin/python3 /usr/local/bin/python3 python3; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        # -B: no bytecode beside the sources, which root's would stay when their owner removes them.
        exec "$python" -B scripts/install.py "$1"
    fi
done
echo "install: needs Python 3.11 or newer; name one: make $1 PYTHON=/path/to/python3" >&2
exit 1
