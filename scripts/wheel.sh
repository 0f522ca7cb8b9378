#!/bin/sh
# dist/tkperf-VERSION-py3-none-any.whl, with man pages.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh
TKPERF_MAN_PAGES=$(mktemp -d)
export TKPERF_MAN_PAGES
trap 'rm -rf "$TKPERF_MAN_PAGES"' EXIT
.venv/bin/python -B scripts/man_pages.py "$TKPERF_MAN_PAGES"
# Certificates from the system, as in setup.sh.
folder=${1:-dist}
UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-1} "$(sh scripts/uv.sh .tools)" build --quiet --wheel --out-dir "$folder"
version=$(.venv/bin/tkperf --version)
printf "pipx install '%s/tkperf-%s-py3-none-any.whl[report]' installs it for you, or uv tool install\n" \
    "$folder" "${version##* }"
