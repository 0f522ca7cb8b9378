#!/bin/sh
# The check list of a release; scripts/release_check.py describes it. Hours.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh test
exec .venv/bin/python -B scripts/release_check.py
