"""tkperf ssd, hdd and raid: plan, show, ask, run, show the results."""

from __future__ import annotations

import click

from tkperf.cli.kinds import InputFile
from tkperf.cli.options import (
    AUTO_DEMAND,
    CONSENT,
    DEMAND,
    LOAD,
    OUTLOOK,
    PURGE,
    RESULT,
    RUN_ARGUMENTS,
    SIZE,
    TRUST,
    SuiteCommand,
    on_target,
    profile_option,
    tests_option,
)
from tkperf.model.choices import DEFAULT_PROFILES, HDD_PROFILES

_SSD_FLAGS = ("-ssdt", "--ssd-type", "--test")
_RAID = (
    on_target(
        "-c", "--config", "raid", required=True, metavar="FILE", type=InputFile(".json"),
        help="raid.json: devices, raidlevel, type (sw_mdadm or hw_lsi), stripsize ...",
    ),
    on_target("--remove-set", is_flag=True, help="Remove the set again after the run."),
)  # fmt: skip


def _run(suite: str, options: dict[str, object]) -> None:
    from tkperf.cli.run_options import read_options
    from tkperf.cli.session import run_session

    run_session(*read_options(suite, options))


@click.command(
    cls=SuiteCommand,
    params=[
        *RUN_ARGUMENTS, tests_option("ssd", *_SSD_FLAGS), profile_option(DEFAULT_PROFILES["ssd"]),
        *DEMAND, AUTO_DEMAND, *LOAD, SIZE, *PURGE, *TRUST, *CONSENT, *OUTLOOK, *RESULT,
    ],
)  # fmt: skip
def ssd(**options: object) -> None:
    """Run the SSD tests on DEVICE and keep everything in NAME.tkperf. DEVICE is erased.

    DEVICE is a block device, a regular file (created with --size) or sim:PRESET, a simulated
    drive (sim:sata-ssd, sim:nvme-4kn, sim:client-tlc, sim:unsteady ...) to rehearse with.

    \b
    Examples:
      tkperf ssd look ./scratch.img --size 1GiB --profile quick
      tkperf ssd D3-S4510 /dev/sdb -nj 4 -iod 32 -rfb
      tkperf ssd D7-P5520 /dev/nvme1n1 -ssdt iops writesat --auto-demand
      tkperf ssd D3-S4510-lat /dev/sdb -ssdt lat --output results/
      tkperf ssd nightly /dev/sdb --yes-destroy PHYH850500YA960L --progress plain
    """
    _run("ssd", options)


@click.command(
    cls=SuiteCommand,
    params=[
        *RUN_ARGUMENTS, tests_option("hdd", "-hddt", "--hdd-type", "--test"),
        profile_option(DEFAULT_PROFILES["hdd"], HDD_PROFILES),
        *DEMAND, *LOAD, SIZE, *TRUST, *CONSENT, *OUTLOOK, *RESULT,
    ],
)  # fmt: skip
def hdd(**options: object) -> None:
    """Measure a hard disk over the areas from its start to its end. DEVICE is overwritten.

    TKperf's suite: 128 equal areas; random reads and writes of 64, 16 and 4 KiB in each (iops),
    sequential reads and writes of 1024 and 4 KiB (tp). With one minute a step, iops takes 19 hours
    and tp 8 and a half. Nothing is purged or preconditioned.

    \b
    Examples:
      tkperf hdd ST4000 /dev/sdc -iod 32
      tkperf hdd ST4000-tp /dev/sdc -hddt tp -rt 10
      tkperf hdd look ./scratch.img --size 1GiB --profile quick
    """
    _run("hdd", options)


@click.command(
    cls=SuiteCommand,
    params=[
        *RUN_ARGUMENTS, *_RAID, tests_option("raid", *_SSD_FLAGS),
        profile_option(DEFAULT_PROFILES["raid"]),
        *DEMAND, AUTO_DEMAND, *LOAD, *PURGE, *TRUST, *CONSENT, *OUTLOOK, *RESULT,
    ],
)  # fmt: skip
def raid(**options: object) -> None:
    """Make a RAID set of whole drives and run the SSD tests on it. All its members are erased.

    DEVICE is the set's node: one to be made for sw_mdadm (/dev/md0), the one the virtual drive
    gets for hw_lsi (/dev/sdX). For each test the members are purged in parallel, the set is made
    again and measured when its resync is done. Preconditioning comes before the set is made for
    sw_mdadm, and on the set for hw_lsi. Keys missing in raid.json have TKperf's defaults.

    \b
    raid.json:
      {"devices": ["/dev/sdb", "/dev/sdc", "/dev/sdd"], "raidlevel": 5, "type": "sw_mdadm"}
      {"devices": ["252:0", "252:1"], "raidlevel": 1, "type": "hw_lsi",
       "readpolicy": "nora", "writepolicy": "wt", "stripsize": "256"}

    \b
    Examples:
      tkperf raid R5 /dev/md0 -c raid.json -nj 4 -iod 32
      tkperf raid R1 /dev/md0 -c raid.json -ssdt iops --yes-destroy SERIAL1,SERIAL2 --remove-set
    """
    _run("raid", options)
