#!/bin/sh
# The whole SSD suite with profile "quick" on a scratch file, and its report: about three minutes.
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
report=$(.venv/bin/tkperf report "$folder/demo.tkperf")
printf '\nThe report: file://%s/%s\n' "$(pwd)" "$report"
printf 'tkperf is %s/.venv/bin/tkperf; "sudo make install" puts it on the PATH, also root'"'"'s.\n' "$(pwd)"
