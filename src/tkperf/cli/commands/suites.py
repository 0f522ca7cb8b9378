"""tkperf ssd, hdd and raid: build the plan, show it, ask the user, execute the run, and show the results."""

from __future__ import annotations

import click

from tkperf.cli.kinds import InputFile
from tkperf.cli.suite_options import (
    AUTO_DEMAND,
    CONSENT,
    DEMAND,
    ENDURANCE,
    LOAD,
    PURGE,
    RESULT,
    RUN_ARGUMENTS,
    SIZE,
    TRUST,
    SuiteCommand,
    common,
    on_target,
    profile_option,
    tests_option,
)
from tkperf.model.choices import DEFAULT_PROFILES, HDD_PROFILES

_SSD_FLAGS = ("-ssdt", "--ssd-type", "--test")
_RAID = (
    common(
        "-c",
        "--config",
        "raid",
        required=True,
        metavar="FILE",
        type=InputFile(".json"),
        help="JSON file with the members, the level and the type of the set (see the example in this help).",
    ),
    on_target("--remove-set", is_flag=True, help="Remove the RAID set after the run."),
)


def _run(suite: str, options: dict[str, object]) -> None:
    from tkperf.cli.run_options import read_options
    from tkperf.cli.session import run_session

    run_session(*read_options(suite, options))


@click.command(
    cls=SuiteCommand,
    params=[
        *RUN_ARGUMENTS,
        tests_option("ssd", *_SSD_FLAGS),
        profile_option(DEFAULT_PROFILES["ssd"]),
        *DEMAND,
        AUTO_DEMAND,
        *LOAD,
        SIZE,
        *PURGE,
        *TRUST,
        *CONSENT,
        *ENDURANCE,
        *RESULT,
    ],
)
def ssd(**options: object) -> None:
    """Run the SSD tests on DEVICE and store everything in NAME.tkperf. DEVICE is erased.

    DEVICE is a block device, a file (created with --size), or a simulated drive for a rehearsal: sim:sata-ssd,
    sim:nvme-4kn, sim:client-tlc, sim:unsteady ...

    \b
    Examples:
      tkperf ssd look ./scratch.img --size 1GiB --profile quick
      tkperf ssd D7-P5520 /dev/nvme1n1 --detach
      tkperf ssd D3-S4510 /dev/sdb -nj 4 -iod 32
      tkperf ssd D3-S4510-lat /dev/sdb -ssdt lat writesat --output results/
      tkperf ssd nightly /dev/sdb --yes-destroy PHYH850500YA960L --progress plain
    """
    _run("ssd", options)


@click.command(
    cls=SuiteCommand,
    params=[
        *RUN_ARGUMENTS,
        tests_option("hdd", "-hddt", "--hdd-type", "--test"),
        profile_option(DEFAULT_PROFILES["hdd"], HDD_PROFILES),
        *DEMAND,
        *LOAD,
        SIZE,
        *TRUST,
        *CONSENT,
        *ENDURANCE,
        *RESULT,
    ],
)
def hdd(**options: object) -> None:
    """Measure a hard disk in areas, from the start of the disk to the end. tkperf overwrites DEVICE.

    This is the hard disk suite of TKperf. tkperf divides the disk into 128 equal areas. In each area, the test
    iops measures random reads and writes of 64, 16 and 4 KiB, and the test tp measures sequential reads and writes of
    1024 and 4 KiB. With steps of one minute, iops takes 19 hours, and tp takes 8.5 hours. tkperf does not purge or
    precondition the disk.

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
        *RUN_ARGUMENTS,
        *_RAID,
        tests_option("raid", *_SSD_FLAGS),
        profile_option(DEFAULT_PROFILES["raid"]),
        *DEMAND,
        AUTO_DEMAND,
        *LOAD,
        *PURGE,
        *TRUST,
        *CONSENT,
        *ENDURANCE,
        *RESULT,
    ],
    epilog="""\b
    raid.json:
      {"devices": ["/dev/sdb", "/dev/sdc", "/dev/sdd"], "raidlevel": 5, "type": "sw_mdadm"}
      {"devices": ["252:0", "252:1"], "raidlevel": 1, "type": "hw_lsi",
       "readpolicy": "nora", "writepolicy": "wt", "stripsize": "256"}

    For keys that raid.json omits, tkperf uses the defaults of TKperf. With sw_mdadm, tkperf preconditions the members
    before it creates the set. With hw_lsi, tkperf preconditions the set.
    """,
)
def raid(**options: object) -> None:
    """Create a RAID set from whole drives and run the SSD tests on it. tkperf erases all members of the set.

    DEVICE is the device node of the set: for sw_mdadm a node such as /dev/md0, for hw_lsi the /dev/sdX of the virtual
    drive. Before each test, tkperf purges the members in parallel, creates the set again and waits until the resync has
    ended.

    \b
    Examples:
      tkperf raid R5 /dev/md0 -c raid.json -nj 4 -iod 32
      tkperf raid R1 /dev/md0 -c raid.json -ssdt iops --yes-destroy SERIAL1,SERIAL2
    """
    _run("raid", options)
