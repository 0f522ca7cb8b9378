#!/bin/sh
# Installs what tkperf needs on Debian or Ubuntu: system packages with apt, the rest into .venv.
#   scripts/setup.sh         what running tests and reports needs
#   scripts/setup.sh test    what the project's own tests need, too
# Called again it returns at once.
set -eu
cd "$(dirname "$0")/.."
purpose=${1:-run}
UV_VERSION=0.9.7

say() { printf 'setup: %s\n' "$*" >&2; }

missing=""
need() { # program package
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
PATH="$PATH:/usr/sbin:/sbin"
need fio fio
need setpriv util-linux
need flock util-linux
command -v python3 >/dev/null 2>&1 || missing="$missing python3"
if ! command -v uv >/dev/null 2>&1 && [ ! -x .tools/bin/uv ]; then
    python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
fi
if [ "$purpose" = test ]; then
    need losetup util-linux
    need mkfs.ext4 e2fsprogs
    need mkswap util-linux
    need sqlite3 sqlite3
    need chromium chromium
fi

if [ -n "$missing" ]; then
    missing=$(printf '%s\n' $missing | sort -u | tr '\n' ' ')
    if ! command -v apt-get >/dev/null 2>&1; then
        say "please install what these Debian packages hold, then call this again: $missing"
        exit 1
    fi
    as_root=""
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null 2>&1 || {
            say "needs root once; please run: apt-get install $missing"
            exit 1
        }
        as_root=sudo
    fi
    say "installing $missing"
    $as_root apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends \
        $missing >/dev/null
fi

if command -v uv >/dev/null 2>&1; then
    uv=uv
else
    uv=.tools/bin/uv
    if [ ! -x $uv ]; then
        say "installing uv $UV_VERSION into .tools"
        python3 -m venv .tools
        .tools/bin/pip install --quiet --disable-pip-version-check "uv==$UV_VERSION"
    fi
fi

stamp=".venv/.tkperf-$purpose"
if [ ! -e "$stamp" ] || [ uv.lock -nt "$stamp" ] || [ pyproject.toml -nt "$stamp" ]; then
    say "installing Python packages into .venv"
    dev=--no-dev
    [ "$purpose" = test ] && dev=--dev
    # The test environment serves the demo as well; the other way round packages would go missing.
    [ -e .venv/.tkperf-test ] && dev=--dev
    $uv sync --quiet --frozen --extra report $dev
    touch "$stamp"
fi
