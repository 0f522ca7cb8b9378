#!/bin/sh
# Tests the artefacts as a new user would use them, each in a clean Debian without the checkout: the Debian
# package (install, measure, upgrade during a run, purge), the wheel, the sdist and the archive.
# Call it as root, with debootstrap installed. It takes half an hour for each suite.
#   scripts/try-deb.sh [SUITE [MIRROR]]      SUITE: bookworm, trixie ...
# MIRROR: the package mirror; by default the mirror that apt on this machine uses
# ARTEFACTS='deb wheel sdist archive'   the artefacts to test; by default all of them
# DIST=dist     the folder with the wheel, the sdist and the archive
# DEB=FILE      the package to test; by default the script builds it twice in the clean system and compares both
# ROOTS=DIR     the folder in which empty systems are kept for the next call
# KEEP=DIR      the folder to which the package, the run file and the report are copied
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" -eq 0 ] || { echo "try-deb: call it as root" >&2; exit 1; }
suite=${1:-bookworm}
mirror=${2:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/*$')}
artefacts=${ARTEFACTS:-deb wheel sdist archive}
dist=${DIST:-dist}
say() { printf '\n=== %s: %s\n' "$suite" "$*"; }

folder=$(mktemp -d -p "${TMPDIR:-/var/tmp}")
trap 'rm -rf --one-file-system "$folder"' EXIT
trap 'exit 130' INT TERM HUP
empty=${ROOTS:-$folder}/$suite
if [ ! -d "$empty" ]; then
    say "making an empty system"
    debootstrap --variant=minbase --include=ca-certificates "$suite" "$empty.new" "$mirror" \
        >"$folder/debootstrap.log" || { tail -n 20 "$folder/debootstrap.log" >&2; exit 1; }
    mv "$empty.new" "$empty"
fi

fresh() { # name: a copy of the empty system, with the network of this machine
    root=$folder/$1
    cp -a "$empty" "$root"
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    # The certificates may include a company's own certificate authority.
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
    echo "127.0.0.1 localhost" >"$root/etc/hosts"
    cp scripts/try-deb-inside.sh tests/short.toml docs/examples/claims.toml "$root/opt/"
}

# All mounts belong to the namespace of this process and disappear with it.
# The chroot contains no device of this machine.
inside() { # step: a part of try-deb-inside.sh
    # shellcheck disable=SC2016
    unshare --mount --pid --ipc --fork --kill-child sh -euc '
        mount -t proc proc "$1/proc"
        mount -t sysfs -o ro sysfs "$1/sys"
        mount -t tmpfs -o mode=755 tmpfs "$1/dev"
        for node in "null 3" "zero 5" "full 7" "random 8" "urandom 9"; do
            mknod -m 666 "$1/dev/${node% *}" c 1 "${node#* }"
        done
        mknod -m 666 "$1/dev/tty" c 5 0
        ln -s /proc/self/fd "$1/dev/fd"
        ln -s pts/ptmx "$1/dev/ptmx"
        mkdir "$1/dev/shm" "$1/dev/pts"
        mount -t tmpfs tmpfs "$1/dev/shm"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
        exec chroot "$1" env -i DEBIAN_FRONTEND=noninteractive HOME=/root LANG=C.UTF-8 \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -eu /opt/try-deb-inside.sh "$2"' \
        sh "$root" "$1"
}

keep() {
    if [ -n "${KEEP:-}" ]; then
        mkdir -p "$KEEP"
        cp "$@" "$KEEP/"
    fi
}

for artefact in $artefacts; do
    say "$artefact"
    case $artefact in
    deb)
        built=${DEB:-}
        if [ -z "$built" ]; then
            # The package is built on the release on which it will be used, with the Python of this release.
            fresh build
            # The tags of the clone determine the version.
            git clone --quiet --no-hardlinks . "$root/opt/sources"
            git log -1 --format=%ct >"$root/opt/epoch"
            inside build
            built=$(echo "$root"/opt/dist/*.deb)
            keep "$built"
        fi
        fresh deb
        cp "$built" "$root/opt/tkperf.deb"
        inside deb
        ;;
    *)
        fresh "$artefact"
        case $artefact in
        wheel) pattern='^tkperf-.*\.whl$' ;;
        sdist) pattern='^tkperf-[^-]*\.tar\.gz$' ;;
        archive) pattern='^tkperf-.*-linux-.*\.tar\.gz$' ;;
        *) echo "try-deb: no artefact is called $artefact" >&2; exit 1 ;;
        esac
        # The folder may also contain artefacts of other commits, so the newest file is tested.
        # shellcheck disable=SC2012
        found=$dist/$(ls -t "$dist" | grep -m 1 -e "$pattern" || true)
        [ -f "$found" ] || { echo "try-deb: $dist contains no $artefact (make $artefact)" >&2; exit 1; }
        cp "$found" "$root/opt/"
        inside "$artefact"
        ;;
    esac
    keep "$root/root/look.tkperf" "$root/root/look.html"
    rm -rf --one-file-system "$root"
done
say "all went well: $artefacts"
