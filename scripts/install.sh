#!/bin/sh
# A self-contained tkperf for all users, and taking it away again. make gives the environment:
#   PREFIX=/usr/local DESTDIR= PYTHON= EXTRAS='report serve' sh scripts/install.sh install|uninstall
set -eu
cd "$(dirname "$0")/.."
# A packager's package says what it needs; else what tkperf calls should be there.
if [ "$1" = install ] && [ -z "${DESTDIR:-}" ]; then
    sh scripts/setup.sh system ||
        echo "install: going on; until these are installed tkperf measures simulated drives only" >&2
fi
exec sh scripts/system-python.sh scripts/install.py "$1"
