#!/bin/sh
# Tests what a new user does in the first hour, in an empty Debian or Ubuntu: an ordinary user with
# sudo, a folder with a space, umask 077, no make, and a PATH without /usr/sbin. make install runs afterwards.
# Call the script as root, with debootstrap installed. It takes ten minutes.
#   scripts/try-first-hour.sh [SUITE [MIRROR]]      SUITE: bookworm, trixie, noble ...
# The report of the demo is copied to KEEP=DIR. TKPERF_DEMO_OPTIONS='--profile tests/short.toml' saves minutes.
# Packages are downloaded with the network settings of this machine.
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" -eq 0 ] || { echo "try-first-hour: call it as root" >&2; exit 1; }
suite=${1:-trixie}

folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
trap 'exit 130' INT TERM HUP
root=$folder/root
echo "try-first-hour: making an empty $suite"
debootstrap --variant=minbase --include=sudo,ca-certificates,python3 "$suite" "$root" ${2:+"$2"} \
    >"$folder/debootstrap.log" || { tail -n 20 "$folder/debootstrap.log" >&2; exit 1; }
cp /etc/resolv.conf "$root/etc/resolv.conf"
# The certificates may include a company's own certificate authority.
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
chroot "$root" useradd --create-home --shell /bin/sh user
chroot "$root" useradd --create-home --shell /bin/sh guest
echo "127.0.0.1 localhost $(uname -n)" >"$root/etc/hosts"
printf 'user ALL=(ALL) NOPASSWD: ALL\nDefaults env_keep += "DEBIAN_FRONTEND"\n' >"$root/etc/sudoers.d/user"
sources="$root/home/user/my sources/tkperf"
mkdir -p "$sources"
git ls-files -z | xargs -0 cp --parents -t "$sources"
chroot "$root" chown -R user:user "/home/user/my sources"

cat >"$root/try.sh" <<'TRY'
set -eu
umask 077
say() { printf '\n--- %s\n' "$*"; }
cd "$HOME/my sources/tkperf"

say "a user who may not call sudo is told what root has to install"
cp -r "$HOME/my sources/tkperf" /tmp/guest
chmod -R a+rX /tmp/guest
sudo chown -R guest /tmp/guest
sudo -u guest sh -c 'cd /tmp/guest; sudo() { return 1; }; sh scripts/demo.sh </dev/null' >/tmp/said 2>&1 &&
    exit 1
cat /tmp/said
grep -q "please run as root: apt-get install fio python3-venv" /tmp/said

say "a fresh checkout: sudo make install leaves nothing of root's in it"
sudo apt-get install -y -qq --no-install-recommends make man-db >/dev/null
sudo sh -c 'umask 077; make install'
[ -z "$(find . ! -user user)" ]
tkperf --version
sudo tkperf --version
sudo -u guest sh -c 'cd; tkperf --version; tkperf ssd r sim:sata-ssd --profile quick -q >r.txt; tkperf report r.tkperf --pdf r.pdf'
man -w tkperf-ssd
man tkperf | head -n 20
sudo make uninstall
[ -z "$(find /usr/local -name '*tkperf*')" ]

say "the demo, without make"
PATH=/usr/local/bin:/usr/bin:/bin TMPDIR=/nowhere sh scripts/demo.sh </dev/null
.venv/bin/tkperf --version

say "sudo from the checkout leaves what its user can remove"
sudo .venv/bin/tkperf doctor >/dev/null
env -u HOME .venv/bin/tkperf report demo/demo.tkperf -o no-home.html
cp -r .venv /tmp/venv-of-user
rm -r .venv
mv /tmp/venv-of-user .venv

say "the checkout moves"
cd "$HOME"
mv "my sources" moved
cd moved/tkperf
sh scripts/setup.sh
.venv/bin/tkperf --version

say "the wheel with Debian's pipx"
sudo apt-get install -y -qq --no-install-recommends pipx >/dev/null
make wheel
pipx install "$(ls dist/*.whl)[report]"
"$HOME/.local/bin/tkperf" report demo/demo.tkperf -o pipx.html

say "make demo again, and all is the user's"
[ -z "$(find . ! -user user)" ]
TRY
# All mounts belong to the namespace of this process and disappear with it.
# The chroot contains no device of this machine.
# shellcheck disable=SC2016
unshare --mount --pid --ipc --fork --kill-child sh -euc '
    mount -t proc proc "$1/proc"
    mount -t sysfs -o ro sysfs "$1/sys"
    mkdir -p "$1/dev/shm"
    mount -t tmpfs tmpfs "$1/dev/shm"
    mkdir -p "$1/dev/pts"
    mount -t devpts devpts "$1/dev/pts"
    exec chroot "$1" setpriv --reuid user --regid user --init-groups \
        env -i TKPERF_DEMO_OPTIONS="$2" DEBIAN_FRONTEND=noninteractive \
        HOME=/home/user LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin:/usr/games sh /try.sh' \
    sh "$root" "${TKPERF_DEMO_OPTIONS:-}"
if [ -n "${KEEP:-}" ]; then
    cp "$root"/home/user/moved/tkperf/demo/demo.* "$KEEP"
fi
echo "try-first-hour: went well in an empty $suite"
