#!/bin/sh
# Installs a self-contained tkperf for all users, or removes it again. make sets the environment:
#   PREFIX=/usr/local DESTDIR= PYTHON= EXTRAS='report serve' sh scripts/install.sh install|uninstall
set -eu
cd "$(dirname "$0")/.."
# With DESTDIR, a packager states the dependencies. Otherwise the programs that tkperf calls should be installed.
if [ "$1" = install ] && [ -z "${DESTDIR:-}" ]; then
    sh scripts/setup.sh system ||
        echo "install: going on; until these are installed tkperf measures simulated drives only" >&2
fi
exec sh scripts/system-python.sh scripts/install.py "$1"
