#!/bin/sh
# The four basic SSD tests with profile "quick" on a scratch file, and its report: about three minutes.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh

folder=demo
[ -e "$folder" ] && folder="demo-$(date +%Y%m%d-%H%M%S)"
mkdir "$folder"
scratch="$folder/scratch.img"
trap 'rm -f "$scratch"' EXIT
trap 'exit 130' INT TERM HUP

.venv/bin/tkperf ssd demo "$scratch" --size 1GiB --profile quick --output "$folder" \
    ${TKPERF_DEMO_OPTIONS:-}
# As an address that can be clicked on, whatever letters are in it.
address=$(.venv/bin/python -c 'import sys, pathlib; print(pathlib.Path(sys.argv[1]).resolve().as_uri())' "$folder/demo.html")
printf '\nThe report: %s\n' "$address"
printf 'tkperf is %s/.venv/bin/tkperf; "sudo make install" puts it on the PATH, also root'"'"'s.\n' "$(pwd)"
