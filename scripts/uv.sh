#!/bin/sh
# Prints the path of uv: the one on the PATH, or one of a known version in FOLDER, put there if need be.
#   scripts/uv.sh FOLDER
set -eu
UV_VERSION=0.13.8
folder=$1

if command -v uv; then
    exit 0
fi
for uv in "$folder/bin/uv" "$(dirname "$0")/../.tools/bin/uv"; do
    if [ -x "$uv" ] && "$uv" --version >/dev/null 2>&1; then
        printf '%s\n' "$uv"
        exit 0
    fi
done
printf 'setup: installing uv %s into %s\n' "$UV_VERSION" "$folder" >&2
"${PYTHON:-python3}" -m venv --clear "$folder"
# By python -m: a script cannot be started from a path with spaces or one that is too long.
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION" >&2
printf '%s\n' "$folder/bin/uv"
