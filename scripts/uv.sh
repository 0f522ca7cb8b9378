#!/bin/sh
# Prints the path of uv: either the uv on the PATH, or a uv with a fixed version in FOLDER, which is installed if
# it is missing.
#   scripts/uv.sh FOLDER
set -eu
folder=$1
locked=$(dirname "$0")/uv.txt

if command -v uv; then
    exit 0
fi
for uv in "$folder/bin/uv" "$(dirname "$0")/../.tools/bin/uv"; do
    if [ -x "$uv" ] && "$uv" --version >/dev/null 2>&1; then
        printf '%s\n' "$uv"
        exit 0
    fi
done
printf 'setup: installing %s into %s\n' "$(grep -o '^uv==[0-9.]*' "$locked")" "$folder" >&2
"${PYTHON:-python3}" -m venv --clear "$folder"
# pip is started with python -m, because a script cannot be started from a path that contains spaces or is too long.
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
    --require-hashes --requirement "$locked" >&2
printf '%s\n' "$folder/bin/uv"
