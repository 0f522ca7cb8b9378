#!/bin/sh
# Measure a drive with new firmware, and compare it with fixed claims and with the last accepted run.
#
#     gate.sh DEVICE SERIAL VERSION
#
# The script erases the drive. Exit code 0 means that the version is accepted, and the new run becomes the baseline.
# Exit code 1 means that a claim is not met or not judged, and the baseline does not change. Any other exit code is an
# error in the set-up (docs/reference/exit-codes.md).
set -eu
device=$1 serial=$2 version=$3

# The job may set these variables. The values after "-" are the defaults.
results=${RESULTS:-results}       # the CI system must keep this folder from job to job
profile=${PROFILE:-pts-e-1.1}
tests=${TESTS:-iops,lat}
within_percent=${WITHIN_PERCENT:-5}
keep=${KEEP:-10}                  # number of run files to keep
as_root=${AS_ROOT-sudo}           # set AS_ROOT to an empty value if the job already runs as root
tkperf=${TKPERF:-tkperf}

claims=$(cd "$(dirname "$0")" && pwd)/claims.toml
mkdir -p "$results"
cd "$results"
name=$version-$(date +%Y%m%d-%H%M%S)

# 1. Measure. With --strict, the job ends if the host disturbs the run, so the gate does not judge noise.
$as_root "$tkperf" ssd "$name" "$device" --test "$tests" --profile "$profile" --strict \
    --yes-destroy "$serial" --progress plain

# 2. Check the claims. The first job has no baseline.
cp "$claims" gate.toml
if [ -e baseline.tkperf ]; then
    printf '\n[baseline]\nrun = "baseline.tkperf"\nwithin_percent = %s\n' "$within_percent" >> gate.toml
fi
"$tkperf" check "$name.tkperf" gate.toml --junit gate.xml --markdown gate.md || exit $?

# 3. The version is accepted, so the new run becomes the next baseline. The rename replaces the link in one step, so the
# link is valid even if the job is killed.
ln -s "$name.tkperf" baseline.new
mv -T baseline.new baseline.tkperf

# 4. Delete old runs. The baseline is the newest run, so the baseline remains.
ls -t -- *-*.tkperf | tail -n "+$((keep + 1))" | while read -r old; do
    rm -f -- "$old" "${old%.tkperf}.log" "${old%.tkperf}.html"
done
