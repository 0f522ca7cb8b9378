#!/bin/sh
# Tests the archive in its intended environment: in an empty Debian without network, as an ordinary
# user, with a real fio. Call the script as root, with debootstrap installed. It takes some minutes.
#   scripts/try-archive.sh [SUITE [MIRROR]]      SUITE: bookworm, trixie, noble ...
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" -eq 0 ] || { echo "try-archive: call it as root" >&2; exit 1; }
suite=${1:-bookworm}

folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
trap 'exit 130' INT TERM HUP
root=$folder/root
echo "try-archive: making an empty $suite with fio, the only thing that the archive lacks"
debootstrap --variant=minbase --include=fio "$suite" "$root" ${2:+"$2"} >"$folder/debootstrap.log" ||
    { tail -n 20 "$folder/debootstrap.log" >&2; exit 1; }
# The package of fio installs Debian's Python, which the archive must not need.
rm -rf "$root"/usr/bin/python3* "$root"/usr/lib/python3*
archive=$(sh scripts/archive.sh "$folder/dist" | tail -n 1)
mkdir "$root/opt/a folder"
tar -C "$root/opt/a folder" -xzf "$archive"
ln -s "/opt/a folder/$(basename "$archive" .tar.gz)/bin/tkperf" "$root/usr/local/bin/tkperf"
cp tests/short.toml "$root/opt/short.toml"
mkdir -p "$root/home/user"
chown 1000:1000 "$root/home/user"

cat >"$root/try.sh" <<'TRY'
set -eu
cd /home/user
ls /sys/class/net 2>/dev/null | grep -v '^lo$' && { echo "there is a network"; exit 1; }
command -v python3 && { echo "there is a Python that is not the archive's"; exit 1; }
tkperf --version
tkperf doctor || true
tkperf ssd look ./scratch.img --size 64MiB --profile /opt/short.toml --progress plain
tkperf show look.tkperf --json >look.json
tkperf report look.tkperf -o look.html --pdf look.pdf --csv tables --xml look.xml
head -c 5 look.pdf | grep -q '%PDF-'
grep -q '<svg' look.html
[ -s tables/cells.csv ]
tkperf compare look.tkperf look.tkperf >/dev/null
touch "/opt/a folder/x" 2>/dev/null && { echo "not an ordinary user"; exit 1; }
ls -l
TRY
# All mounts belong to the namespace of this process and disappear with it.
# The chroot contains no device of this machine.
# shellcheck disable=SC2016
unshare --net --mount --pid --ipc --fork --kill-child sh -euc '
    mount -t proc proc "$1/proc"
    mount -t sysfs -o ro sysfs "$1/sys"
    mkdir -p "$1/dev/shm"
    mount -t tmpfs tmpfs "$1/dev/shm"
    exec chroot "$1" setpriv --reuid 1000 --regid 1000 --clear-groups --no-new-privs \
        env -i HOME=/home/user PATH=/usr/local/bin:/usr/bin:/bin sh /try.sh' sh "$root"
if [ -n "${KEEP:-}" ]; then
    cp "$root/home/user/look.html" "$root/home/user/look.pdf" "$KEEP"
fi
echo "try-archive: works in an empty $suite without network"
