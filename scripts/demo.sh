#!/bin/sh
# Runs the four basic SSD tests with the profile "quick" on a scratch file and makes the report.
# This takes about three minutes.
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
# Print the path as an address that the user can click on, whatever characters the path contains.
address=$(.venv/bin/python -c 'import sys, pathlib; print(pathlib.Path(sys.argv[1]).resolve().as_uri())' "$folder/demo.html")
printf '\nThe report: %s\n' "$address"
printf 'tkperf is %s/.venv/bin/tkperf; "sudo make install" puts it on the PATH, also root'"'"'s.\n' "$(pwd)"
