#!/bin/sh
# Installs the packages that tkperf needs on Debian or Ubuntu: system packages with apt, all others into .venv.
#   scripts/setup.sh            packages for measuring, reports and tkperf serve
#   scripts/setup.sh system     only the system packages from this list
#   scripts/setup.sh deb        only the system packages, including those for make deb
#   scripts/setup.sh archive    only the system packages, including those for make archive
#   scripts/setup.sh parquet    also the packages for tkperf report --parquet
#   scripts/setup.sh test       also the packages for the tests of the project
# A second call returns immediately. Root or sudo is used only for apt, and only if a package is missing.
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
    # Packages for the lab: a virtual machine, and the programs that its test cases run on its drives.
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
    # Packages for hosts of batches: sshd in network namespaces.
    need sshd openssh-server
    need ssh openssh-client
    need sudo sudo
    need ip iproute2
    # Packages for man pages and the archive.
    need make make
    need mandoc mandoc
    need groff groff
    need patchelf patchelf
    need ldd libc-bin
    need pdftotext poppler-utils
    # Ubuntu has Chromium only as a snap. On Ubuntu, browser tests run only if a browser is already installed.
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
    # Use a single call, so that sudo asks for the password only once. sudo drops the environment, so env sets it.
    $as_root env DEBIAN_FRONTEND=noninteractive sh -c '
        apt-get update -qq || echo "setup: package lists not renewed, trying the old ones" >&2
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null' sh "$@" ||
        fail "could not install; please run as root: apt-get install $*"
}

if [ -n "$missing" ]; then
    # The result is split into words on purpose: each word is one package.
    # shellcheck disable=SC2046,SC2086
    install_packages $(printf '%s\n' $missing | sort -u)
fi

case $purpose in system | archive | deb) exit 0 ;; esac

for folder in . .venv .tools; do
    [ ! -e $folder ] || [ -w $folder ] || fail "$(id -un) cannot write to $(pwd)/$folder;" \
        "if it was made with sudo, remove it: sudo rm -r '$(pwd)/.venv' '$(pwd)/.tools'"
done

stamp=".venv/.tkperf-$purpose"
# The version of tkperf names the commit, so tkperf is installed again for another commit or tag. The option
# --git-dir is necessary because git refuses to search for the repository of another user.
commit=$(git --git-dir .git describe --tags --long --always --match 'v*' 2>/dev/null || true)
# Packages from earlier calls remain: for example, the demo can use the environment for tests, with Parquet.
asked="$purpose $(cd .venv 2>/dev/null && echo .tkperf-* || true)"
# Programs in .venv contain the path of the checkout, so they do not start after the checkout was moved.
if [ -s "$stamp" ] && [ "$(head -n 1 "$stamp")" != "$(pwd)" ]; then
    say "the folder has moved: .venv is made anew"
    rm -rf .venv .tools
fi
# shellcheck disable=SC3013 # -nt is not in POSIX, but every sh of Debian and Ubuntu supports it
if [ -e "$stamp" ] && [ ! uv.lock -nt "$stamp" ] && [ ! pyproject.toml -nt "$stamp" ] &&
    [ "$(sed -n 2p "$stamp")" = "$commit" ] && [ -x .venv/bin/tkperf ]; then
    exit 0
fi

uv=$(sh scripts/uv.sh .tools)

say "installing Python packages into .venv"
set -- --extra report --extra serve --no-dev
case $asked in *parquet*) set -- "$@" --extra parquet ;; esac
case $asked in *test*) set -- --all-extras --dev ;; esac
# The Python of the system is used if its version is at least 3.11. Otherwise uv downloads a Python.
# The certificates of the system are used, because only they include a company's own certificate authority.
UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-1} "$uv" sync --quiet --frozen --compile-bytecode --python-preference system \
    --reinstall-package tkperf "$@"
# The owner of the folder compiles all bytecode now. Otherwise a later sudo would leave files of root in the folder.
.venv/bin/python -m compileall -q src
{ pwd; printf '%s\n' "$commit"; } >"$stamp"
# This is printed only once, because a second call returns above.
say "tkperf is .venv/bin/tkperf; 'sudo make install' puts it on the PATH, also root's"
