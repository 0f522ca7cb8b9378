#!/bin/sh
# Tests the wheel and the sdist as users would use them, in temporary folders:
# - the wheel with uv tool install and pipx install, without an extra, with [report] and with [serve];
# - the tests of the unpacked sdist without fio and, if root calls this script, without network and as another user.
# Call the script by hand. It takes some minutes and downloads packages from the package index.
#   scripts/try-wheel.sh [FOLDER]     FOLDER: the folder with existing artefacts; by default they are built
set -eu
cd "$(dirname "$0")/.."
uv=$(realpath "$(sh scripts/uv.sh .tools)")
export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}"
short=$(pwd)/tests/short.toml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
chmod 755 "$work"
folder=${1:-$work/dist}
[ $# -gt 0 ] || sh scripts/wheel.sh "$folder" >"$work/build.log" || { cat "$work/build.log" >&2; exit 1; }
wheel=$(realpath "$(ls "$folder"/tkperf-*.whl)")
sdist=${wheel%-py3-none-any.whl}.tar.gz
"$uv" venv --quiet "$work/pipx"
"$uv" pip install --quiet --python "$work/pipx/bin/python" pipx

try() { # how extra
    bin=$work/$1-${2:-base}/bin
    "$bin/tkperf" --version
    cd "$work"
    name=$1-${2:-base}
    "$bin/tkperf" ssd "$name" sim:sata-ssd --profile "$short" -q
    "$bin/tkperf" show "$name.tkperf" --json >"$name.json"
    case $2 in
        report) "$bin/tkperf" report "$name.tkperf" -o "$name.html" --pdf "$name.pdf" ;;
        # --allow-root is necessary if root calls this script. It is safe, because the script made the run files.
        serve) timeout 60 sh -c '"$0" serve . --port 18573 --allow-root & server=$!
            until "$1" -c "import urllib.request as r; r.urlopen(\"http://127.0.0.1:18573/\").read()" 2>/dev/null
            do sleep 1; done; kill $server' "$bin/tkperf" "$work/pipx/bin/python" ;;
        *) if "$bin/tkperf" report "$name.tkperf" -o "$name.html" 2>"$name.txt"; then
                echo "try-wheel: the wheel without extras wrote a report" >&2
                exit 1
            fi
            grep 'need' "$name.txt" ;;
    esac
    cd "$OLDPWD"
    echo "try-wheel: $1 install tkperf${2:+[$2]}: ok"
}

for extra in "" report serve; do
    what=$wheel${extra:+[$extra]}
    UV_TOOL_DIR=$work/uv-${extra:-base}/tools UV_TOOL_BIN_DIR=$work/uv-${extra:-base}/bin \
        "$uv" tool install --quiet "$what"
    try uv "$extra"
    PIPX_HOME=$work/pipx-${extra:-base}/home PIPX_BIN_DIR=$work/pipx-${extra:-base}/bin \
        PIPX_MAN_DIR=$work/pipx-${extra:-base}/man "$work/pipx/bin/pipx" install --quiet "$what" >/dev/null
    test -e "$work/pipx-${extra:-base}/man/man1/tkperf.1"
    try pipx "$extra"
done

mkdir "$work/sdist" "$work/path"
tar -C "$work/sdist" --strip-components 1 -xzf "$sdist"
# The other user may not be able to read a Python in the home folder of root, so the Python of the system is used.
"$uv" venv --quiet --python "$(sh scripts/system-python.sh -c 'import sys; print(sys.executable)')" "$work/sdist/.venv"
"$uv" pip install --quiet --python "$work/sdist/.venv/bin/python" "$work/sdist[report,parquet,serve]" \
    hypothesis pytest pytest-timeout
for program in /usr/bin/*; do
    case ${program##*/} in fio | python*) ;; *) ln -s "$program" "$work/path" ;; esac
done
set -- "$work/sdist/.venv/bin/python" -m pytest -q -p no:cacheprovider -m "not fio and not root"
if [ "$(id -u)" -eq 0 ]; then
    chown -R 65534:65534 "$work/sdist"
    set -- unshare --net setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
fi
cd "$work/sdist"
PATH="$work/path" HOME="$work/sdist" TMPDIR="$work/sdist" "$@"
echo "try-wheel: tests of the sdist: ok"
