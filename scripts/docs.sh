#!/bin/sh
# Builds the pages of docs/ as a site: dist/site/index.html. With an argument, the site is written into that folder.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh test
exec .venv/bin/python -B scripts/docs.py "$@"
