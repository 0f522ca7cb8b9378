#!/bin/sh
# Builds dist/tkperf-VERSION.tar.gz (the sdist) and, from the sdist, dist/tkperf-VERSION-py3-none-any.whl. Both contain
# the man pages. The same commit leads to the same bytes.
#   scripts/wheel.sh [FOLDER]
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TKPERF_MAN_PAGES="$work/man"
.venv/bin/python -B scripts/man_pages.py "$TKPERF_MAN_PAGES"
# The time of each file in the artefacts is that of the commit. The files of an unpacked sdist have this time.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y PKG-INFO)
fi
export SOURCE_DATE_EPOCH
# The certificates of the system are used, as in setup.sh.
UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-1} "$(sh scripts/uv.sh .tools)" build --quiet --out-dir "$work/dist" \
    --build-constraints scripts/build.txt --require-hashes
folder=${1:-dist}
mkdir -p "$folder"
# Each commit has a different version, but commands such as pipx install "$(ls dist/*.whl)" need a single wheel.
rm -f "$folder"/tkperf-*-py3-none-any.whl
for file in "$work"/dist/*.tar.gz "$work"/dist/*.whl; do
    mv "$file" "$folder"
    printf '%s/%s\n' "$folder" "${file##*/}"
done
printf "pipx install '%s/%s[report]' installs it for you, or uv tool install\n" "$folder" "${file##*/}"
