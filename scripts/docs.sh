#!/bin/sh
# The pages of docs/ as a site: dist/site/index.html. With an argument: into that folder.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh test
exec .venv/bin/python -B scripts/docs.py "$@"
