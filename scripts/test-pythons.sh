#!/bin/sh
# Runs the tests without fio and root on each Python that tkperf supports, with the newest dependencies. On the oldest
# Python, the tests also run with the oldest direct dependencies that pyproject.toml permits. uv downloads missing
# versions of Python if possible.
#   scripts/test-pythons.sh [ARGUMENTS OF PYTEST]
# Environment: PYTHONS="3.11 3.12" selects the versions, beginning with the oldest.
set -eu
cd "$(dirname "$0")/.."
pythons=${PYTHONS:-3.11 3.12 3.13 3.14 3.15}
resolutions="lowest-direct highest"
export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}"
uv=$(sh scripts/uv.sh .tools)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
# Add the Pythons that pyenv installed. The python3.12 of pyenv itself works only in folders that select this version.
for folder in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin; do
    PATH=$folder:$PATH
done

# Tests of the lab, of installations and of the documentation do not depend on the Python or its packages.
[ $# -gt 0 ] || set -- --ignore tests/lab --ignore tests/project --ignore tests/docs tests

failed=0
for python in $pythons; do
    if ! "$uv" venv --quiet --python "$python" "$work/found" 2>"$work/why"; then
        echo "test-pythons: Python $python: not available: $(tail -n 1 "$work/why")"
        failed=1
        continue
    fi
    for resolution in $resolutions; do
        # pyproject.toml turns warnings into errors. Old packages may use functions that their newest dependencies
        # report as deprecated.
        warnings=""
        [ "$resolution" = highest ] || warnings=-Wdefault::DeprecationWarning
        label="Python $python, $resolution"
        "$uv" venv --quiet --clear --python "$python" "$work/venv"
        # uv prefers the versions in an existing output file.
        rm -f "$work/packages"
        # Only the direct dependencies of tkperf have their oldest versions. The tests always use the newest pytest. The
        # test client of an old starlette needs httpx instead of httpx2.
        if "$uv" pip compile --quiet --all-extras --resolution "$resolution" --python "$work/venv/bin/python" \
            --output-file "$work/packages" pyproject.toml &&
            "$uv" pip install --quiet --python "$work/venv/bin/python" --requirement "$work/packages" \
                --editable . --group dev httpx &&
            "$work/venv/bin/python" -m pytest -q -p no:cacheprovider ${warnings:+"$warnings"} \
                -m "not fio and not root" "$@"; then
            echo "test-pythons: $label: ok"
        else
            echo "test-pythons: $label: failed"
            failed=1
        fi
    done
    # The oldest packages exist only for the oldest Python. For a newer Python, an installer chooses newer packages.
    resolutions=highest
    rm -rf "$work/found"
done
exit $failed
