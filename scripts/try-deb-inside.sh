#!/bin/sh
# This part of try-deb.sh runs in the clean system as root.
#   try-deb-inside.sh build|deb|wheel|sdist|archive
set -eu
cd /root
say() { printf '\n--- %s\n' "$*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }
apt() { apt-get install -y -qq --no-install-recommends "$@" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }; }

first_commands() { # the first commands of README.md, and a run with a real fio on a scratch file
    say "versions"
    tkperf --version
    fio --version
    say "doctor"
    tkperf doctor >doctor.txt || true
    cat doctor.txt
    grep -q "^Can measure" doctor.txt || fail "doctor does not say that this system can measure"
    grep -q "block devices cannot be tested from here" doctor.txt || fail "doctor does not see the PID namespace"
    case $(fio --version) in
    fio-3.3[0-8]*) grep -q "rounds a queue depth up" doctor.txt || fail "doctor does not name the limits of fio" ;;
    *) ! grep -q "rounds a queue depth up" doctor.txt || fail "doctor names limits that this fio does not have" ;;
    esac
    say "simulated drives"
    tkperf ssd rehearsal sim:sata-ssd --profile /opt/short.toml -q
    tkperf ssd nvme sim:nvme-4kn --profile /opt/short.toml -q
    tkperf compare rehearsal.tkperf nvme.tkperf --html comparison.html >/dev/null
    grep -q '<svg' comparison.html || fail "no chart in the comparison"
    tkperf check rehearsal.tkperf /opt/claims.toml >/dev/null || [ $? -le 5 ] || fail "check"
    say "a run with a real fio on a scratch file"
    tkperf ssd look ./scratch.img --size 64MiB --profile /opt/short.toml --progress plain >look.txt 2>&1 ||
        { cat look.txt; fail "the run"; }
    tail -n 12 look.txt
    grep -q '<svg' look.html || fail "no chart in the report"
    tkperf report look.tkperf --pdf look.pdf --csv tables
    head -c 5 look.pdf | grep -q '%PDF-' || fail "no PDF"
    say "serve"
    tkperf serve /root --port 8765 --allow-root >serve.txt 2>&1 &
    server=$!
    for _ in $(seq 60); do
        "${PYTHON:-python3}" -c 'import urllib.request as r
print(r.urlopen("http://127.0.0.1:8765/", timeout=10).read().decode())' >page.txt 2>/dev/null || true
        grep -q 'look' page.txt && break
        sleep 1
    done
    grep -q 'look' page.txt || { cat serve.txt page.txt; fail "serve does not show the run"; }
    kill "$server"
    wait "$server" || true
    say "serve showed the run"
}

build() {
    apt-get update -qq
    apt python3 python3-venv git debhelper dpkg-dev
    cd /opt/sources
    SOURCE_DATE_EPOCH=$(cat /opt/epoch)
    export SOURCE_DATE_EPOCH
    sh scripts/deb.sh /opt/dist
    say "the same bytes again"
    sh scripts/deb.sh /opt/again
    cmp /opt/dist/*.deb /opt/again/*.deb || fail "the second build differs"
}

deb() {
    apt-get update -qq
    say "install"
    apt-get install -y -qq /opt/tkperf.deb >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
    dpkg-query -W -f '${Package} ${Version} ${Status}\n' tkperf fio python3
    for name in nvme hdparm file; do command -v "$name" >/dev/null || fail "$name, a recommendation, is missing"; done
    [ -z "$(find /var/lib/dpkg/info -name 'tkperf.*inst' -o -name 'tkperf.*rm')" ] || fail "there are maintainer scripts"
    find /usr/lib/tkperf /usr/bin/tkperf | sort >before.txt
    first_commands
    say "man pages and completions"
    apt man-db zsh fish bash-completion
    zcat /usr/share/man/man1/tkperf.1.gz | head -n 1
    [ "$(zsh -c 'autoload -U compinit; compinit -u; print $_comps[tkperf]')" = _tkperf ] || fail "zsh"
    fish -c 'complete -C "tkperf doc"' | grep -q '^doctor' || fail "fish"
    bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader tkperf; complete -p tkperf' || fail "bash"
    say "root writes nothing below /usr"
    find /usr/lib/tkperf /usr/bin/tkperf | sort | cmp - before.txt || fail "files were added"
    say "an upgrade during a run"
    # The next version differs from this version only in its version number.
    dpkg-deb -R /opt/tkperf.deb /opt/unpacked
    sed -i 's/^\(Version: .*\)$/\1.next/' /opt/unpacked/DEBIAN/control
    dpkg-deb -Zgzip -z1 -b /opt/unpacked /opt/next.deb >/dev/null
    rm -rf /opt/unpacked
    tkperf ssd during ./during.img --size 64MiB --profile /opt/short.toml -q >during.txt 2>&1 &
    run=$!
    for _ in $(seq 300); do
        tkperf status 2>/dev/null | grep -q during && break
        sleep 1
    done
    apt-get install -y -qq /opt/next.deb >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
    kill -0 "$run" || fail "the run had ended before the upgrade"
    wait "$run" || { cat during.txt; fail "the upgrade disturbed the run"; }
    tail -n 3 during.txt
    ! grep -i "warning: no report\|Traceback" during.txt || fail "the report"
    grep -q '<svg' during.html || fail "the run left no report"
    tkperf show during.tkperf >/dev/null
    dpkg-query -W -f '${Package} ${Version}\n' tkperf
    say "purge leaves the results"
    apt-get purge -y -qq tkperf >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
    [ -z "$(find /usr /etc /var -name '*tkperf*')" ] || fail "purge left files"
    for name in look during; do
        [ -s "$name.tkperf" ] && [ -s "$name.html" ] || fail "purge removed $name"
    done
}

wheel() {
    apt-get update -qq
    apt fio python3 pipx
    # /opt contains only one wheel. Its dependencies are downloaded from the package index.
    pipx install "$(ls /opt/tkperf-*.whl)[serve]" >/tmp/pipx.log 2>&1 || { cat /tmp/pipx.log; exit 1; }
    PATH=$PATH:/root/.local/bin
    first_commands
}

sdist() {
    apt-get update -qq
    apt fio python3 python3-venv
    python3 -m venv /root/venv
    /root/venv/bin/pip install -q "$(ls /opt/tkperf-*.tar.gz)[serve]"
    PATH=$PATH:/root/venv/bin
    first_commands
}

archive() {
    apt-get update -qq
    apt fio
    # The package of fio installs Debian's Python, which the archive must not need.
    rm -rf /usr/bin/python3* /usr/lib/python3*
    mkdir "/opt/a folder"
    tar -C "/opt/a folder" -xzf /opt/tkperf-*.tar.gz
    ln -s "/opt/a folder"/tkperf-*/bin/tkperf /usr/local/bin/tkperf
    PYTHON=$(echo "/opt/a folder"/tkperf-*/python/bin/python3)
    first_commands
}

"$1"
