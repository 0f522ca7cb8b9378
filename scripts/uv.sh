#!/bin/sh
# Prints the path of uv: either the uv on the PATH, or a uv with a fixed version in FOLDER, which is installed if
# it is missing.
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
# pip is started with python -m, because a script cannot be started from a path that contains spaces or is too long.
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION" >&2
printf '%s\n' "$folder/bin/uv"
