#!/bin/sh
# Installs what tkperf needs on Debian or Ubuntu: system packages with apt, the rest into .venv.
#   scripts/setup.sh            what measuring, reports and tkperf serve need
#   scripts/setup.sh system     of that, the system packages alone
#   scripts/setup.sh deb        the system packages alone, with those that make deb needs
#   scripts/setup.sh archive    the system packages alone, with those that make archive needs
#   scripts/setup.sh parquet    what tkperf report --parquet needs, too
#   scripts/setup.sh test       what the project's own tests need, too
# Called again it returns at once. Root or sudo is used for apt alone, and only if a package lacks.
set -eu
cd "$(dirname "$0")/.."
purpose=${1:-run}

say() { printf 'setup: %s\n' "$*" >&2; }
fail() {
    say "$*"
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# Ordinary users on Debian do not have the folders of system programs on their PATH.
PATH="$PATH:/usr/sbin:/sbin"

missing=""
need() { # program package
    have "$1" || missing="$missing $2"
}
need fio fio
need setpriv util-linux
need flock util-linux
need python3 python3
if [ "$purpose" = archive ]; then
    need patchelf patchelf
fi
if [ "$purpose" = deb ]; then
    need dh debhelper
    need dpkg-shlibdeps dpkg-dev
fi
if ! have uv && [ ! -x .tools/bin/uv ]; then
    python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
fi
if [ "$purpose" = test ]; then
    need losetup mount
    need mkswap util-linux
    need mkfs.ext4 e2fsprogs
    need sfdisk fdisk
    need sqlite3 sqlite3
    # The lab: a virtual machine, and what its cases do to its drives.
    need qemu-system-x86_64 qemu-system-x86
    need busybox busybox-static
    need modprobe kmod
    need cpio cpio
    need udevadm udev
    need openssl openssl
    need nvme nvme-cli
    need hdparm hdparm
    need smartctl smartmontools
    need sg_format sg3-utils
    need mdadm mdadm
    need vgcreate lvm2
    need cryptsetup cryptsetup-bin
    need mkfs.btrfs btrfs-progs
    need pgrep procps
    # Hosts of batches: sshd in network namespaces.
    need sshd openssh-server
    need ssh openssh-client
    need sudo sudo
    need ip iproute2
    # Man pages and the archive.
    need make make
    need mandoc mandoc
    need groff groff
    need patchelf patchelf
    need ldd libc-bin
    need pdftotext poppler-utils
    # Ubuntu has Chromium only as a snap: there, tests in a browser run if one is installed.
    grep -qs '^ID=ubuntu' /etc/os-release || need chromium chromium
fi

install_packages() { # package...
    have apt-get || fail "please install what these Debian packages hold, then call this again: $*"
    as_root=""
    if [ "$(id -u)" -ne 0 ]; then
        have sudo || fail "needs root once; please run as root: apt-get install $*"
        as_root=sudo
    fi
    say "installing $*"
    # One call, so that sudo asks once; it drops the environment, hence env.
    $as_root env DEBIAN_FRONTEND=noninteractive sh -c '
        apt-get update -qq || echo "setup: package lists not renewed, trying the old ones" >&2
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null' sh "$@" ||
        fail "could not install; please run as root: apt-get install $*"
}

if [ -n "$missing" ]; then
    # Words on purpose: one package each.
    # shellcheck disable=SC2046,SC2086
    install_packages $(printf '%s\n' $missing | sort -u)
fi

case $purpose in system | archive | deb) exit 0 ;; esac

for folder in . .venv .tools; do
    [ ! -e $folder ] || [ -w $folder ] || fail "$(id -un) cannot write to $(pwd)/$folder;" \
        "if it was made with sudo, remove it: sudo rm -r '$(pwd)/.venv' '$(pwd)/.tools'"
done

stamp=".venv/.tkperf-$purpose"
# tkperf's version names the commit, so another commit or tag is installed again. --git-dir: git refuses
# to look for the repository of another user by itself.
commit=$(git --git-dir .git describe --tags --long --always --match 'v*' 2>/dev/null || true)
# What was asked for once stays: the test environment serves the demo as well, with Parquet.
asked="$purpose $(cd .venv 2>/dev/null && echo .tkperf-* || true)"
# Programs in .venv know where they are: after a move of the checkout they start nothing.
if [ -s "$stamp" ] && [ "$(head -n 1 "$stamp")" != "$(pwd)" ]; then
    say "the folder has moved: .venv is made anew"
    rm -rf .venv .tools
fi
# shellcheck disable=SC3013 # -nt is not in POSIX, but in every sh of Debian and Ubuntu
if [ -e "$stamp" ] && [ ! uv.lock -nt "$stamp" ] && [ ! pyproject.toml -nt "$stamp" ] &&
    [ "$(sed -n 2p "$stamp")" = "$commit" ] && [ -x .venv/bin/tkperf ]; then
    exit 0
fi

uv=$(sh scripts/uv.sh .tools)

say "installing Python packages into .venv"
set -- --extra report --extra serve --no-dev
case $asked in *parquet*) set -- "$@" --extra parquet ;; esac
case $asked in *test*) set -- --all-extras --dev ;; esac
# The system's Python serves if it is 3.11 or newer; otherwise uv fetches one.
# Certificates from the system: a company's own authority is known there only.
UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-1} "$uv" sync --quiet --frozen --compile-bytecode --python-preference system \
    --reinstall-package tkperf "$@"
# All bytecode now, by who owns the folder: a later sudo would leave files of root's in it.
.venv/bin/python -m compileall -q src
{ pwd; printf '%s\n' "$commit"; } >"$stamp"
# Once: a second call returns above.
say "tkperf is .venv/bin/tkperf; 'sudo make install' puts it on the PATH, also root's"
