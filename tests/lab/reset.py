"""The lab case with two boots: ``python -m tests.lab.reset``.

The machine is reset in the middle of a round, without a sync, and boots again. The run then continues from its run
file, which is stored on an ext4 file system of the machine. At the end, the run file must be complete.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.lab.disks import SATA, SATA_SECOND
from tests.lab.kernel import LabUnavailableError
from tests.lab.machine import CHECKOUT, run_job

LIMIT_S = 600.0
# The number of steps that the short run completes before the reset: a fill, and six of the eight steps of two rounds.
RESET_AFTER_STEPS = 7
_BOTH = f"""
export PATH=$PWD/.venv/bin:$PATH
find_disk() {{ lsblk --nodeps --noheadings --output NAME,SERIAL | awk -v s=$1 '$2 == s {{ print "/dev/" $1 }}'; }}
drive=$(find_disk {SATA.serial}); kept=$(find_disk {SATA_SECOND.serial})
mkdir -p /mnt/kept
"""
RESET = f"""{_BOTH}
mkfs.ext4 -q $kept && mount $kept /mnt/kept || exit 1
tkperf ssd run $drive --profile tests/lab/cases/lab.toml --test iops,lat \\
    --yes-destroy {SATA.serial} --output /mnt/kept --progress json >/lab/events.txt 2>/lab/complaints.txt &
while [ $(grep -c '"event": "StepEnded"' /lab/events.txt) -lt {RESET_AFTER_STEPS} ]; do
    kill -0 $! || {{ cat /lab/complaints.txt; exit 1; }}
    sleep 0.1
done
echo "reset after $(grep -c StepEnded /lab/events.txt) steps"
echo b >/proc/sysrq-trigger
sleep 60
"""
GO_ON = f"""{_BOTH}
mount $kept /mnt/kept || exit 1
cp /mnt/kept/run.tkperf /lab/before.tkperf
tkperf show /mnt/kept/run.tkperf | sed -n 1,6p
tkperf resume /mnt/kept/run.tkperf $drive --yes-destroy {SATA.serial} --progress plain >/dev/null || exit 1
cp /mnt/kept/run.tkperf /lab/run.tkperf
python -m tests.lab.reset --look
"""


def look(folder: Path) -> int:
    """Check the run file in the machine after the run has continued. Return 0 if the file contains no fault."""
    from tests.resuming import find_faults
    from tkperf import load
    from tkperf.page.words.run import describe_resumption

    faults = find_faults(folder / "run.tkperf", folder / "before.tkperf")
    result = load(folder / "run.tkperf")
    for resumption in result.resumptions:
        print(describe_resumption(resumption))
    again = [(resumption.goes_on, resumption.again) for resumption in result.resumptions]
    if again != [("round", "IOPS, round 2")]:
        faults.append(f"measured again: {again}")
    for fault in faults:
        print(f"FAULT: {fault}")
    return bool(faults)


def main() -> int:
    """Return the exit status. If the lab cannot be built on this machine, print SKIP and return 0."""
    if "--look" in sys.argv:
        return look(Path("/lab"))
    try:
        result = run_job(RESET, GO_ON, limit_s=LIMIT_S, disks=(SATA, SATA_SECOND), keep=CHECKOUT / ".lab/reset")
    except LabUnavailableError as error:
        print(f"SKIP: the lab cannot run here: {error}")
        return 0
    if result.status is None:
        print(result.kernel_log[-4000:])
    print(f"lab: reset in mid-round and resumed: {'passed' if result.status == 0 else 'FAILED'}")
    return 1 if result.status is None else result.status


if __name__ == "__main__":
    sys.exit(main())
