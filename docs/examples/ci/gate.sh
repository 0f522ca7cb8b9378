#!/bin/sh
# Measure a drive with new firmware, and compare it with fixed claims and with the last accepted run.
#
#     gate.sh DEVICE SERIAL VERSION
#
# The drive is erased. Exit code 0: accepted, and the new run becomes the baseline. 1: a claim is not met or not judged,
# and the baseline stays. Any other code is an error of the set-up, see docs/reference/exit-codes.md.
set -eu
device=$1 serial=$2 version=$3

# Settings of the job, with their defaults.
results=${RESULTS:-results}       # keep this folder from job to job
profile=${PROFILE:-pts-e-1.1}
tests=${TESTS:-iops,lat}
within_percent=${WITHIN_PERCENT:-5}
keep=${KEEP:-10}                  # run files of earlier jobs
as_root=${AS_ROOT-sudo}           # empty: the job is root already
tkperf=${TKPERF:-tkperf}

claims=$(cd "$(dirname "$0")" && pwd)/claims.toml
mkdir -p "$results"
cd "$results"
name=$version-$(date +%Y%m%d-%H%M%S)

# 1. Measure. --strict ends the job if the host disturbs, so that the gate does not judge noise.
$as_root "$tkperf" ssd "$name" "$device" --test "$tests" --profile "$profile" --strict \
    --yes-destroy "$serial" --progress plain

# 2. Check. In the first job there is no baseline.
cp "$claims" gate.toml
if [ -e baseline.tkperf ]; then
    printf '\n[baseline]\nrun = "baseline.tkperf"\nwithin_percent = %s\n' "$within_percent" >> gate.toml
fi
"$tkperf" check "$name.tkperf" gate.toml --junit gate.xml --markdown gate.md || exit $?

# 3. Accepted: the new run is the next baseline. The link changes in one step, also if the job is killed.
ln -s "$name.tkperf" baseline.new
mv -T baseline.new baseline.tkperf

# 4. Delete old runs, but not the baseline, which is the newest.
ls -t -- *-*.tkperf | tail -n "+$((keep + 1))" | while read -r old; do
    rm -f -- "$old" "${old%.tkperf}.log" "${old%.tkperf}.html"
done
