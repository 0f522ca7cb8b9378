#!/bin/sh
# Checks that each package in uv.lock that tkperf may need has a wheel for arm64 (glibc), for each supported Python.
# It downloads only metadata, and installs nothing. Nobody has run tkperf on arm64.
#   scripts/arm64-wheels.sh
# Environment: PYTHONS="3.11 3.12" selects the versions.
set -eu
cd "$(dirname "$0")/.."
export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}"
uv=$(sh scripts/uv.sh .tools)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
"$uv" export --quiet --frozen --no-dev --all-extras --no-emit-project --no-hashes --output-file "$work/locked.txt"
for python in ${PYTHONS:-3.11 3.12 3.13 3.14}; do
    "$uv" pip compile --quiet --no-deps --only-binary :all: --python-platform aarch64-unknown-linux-gnu \
        --python-version "$python" --output-file "$work/$python.txt" "$work/locked.txt"
    echo "arm64-wheels: Python $python: $(grep -c == "$work/$python.txt") packages have a wheel"
done
