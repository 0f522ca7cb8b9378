"""tkperf ssd, hdd and raid: plan, show, ask, run, show the results."""

from __future__ import annotations

import click

from tkperf.cli.calling import Heading, option_about
from tkperf.cli.kinds import InputFile
from tkperf.cli.options import (
    auto_demand_option,
    consent_options,
    demand_options,
    load_options,
    outlook_options,
    profile_option,
    purge_options,
    result_options,
    run_arguments,
    size_option,
    suite_command,
    tests_option,
    trust_options,
)
from tkperf.model.choices import HDD_PROFILES

SSD_FLAGS = ("-ssdt", "--ssd-type", "--test")


@click.command(cls=suite_command("ssd", SSD_FLAGS))
@run_arguments
@tests_option("ssd", SSD_FLAGS)
@profile_option("pts-e-1.1")
@demand_options
@auto_demand_option
@load_options
@size_option
@purge_options
@trust_options
@consent_options
@outlook_options
@result_options
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
    from tkperf.cli.run_options import read_options
    from tkperf.cli.session import run_session

    run_session(*read_options("ssd", options))


HDD_FLAGS = ("-hddt", "--hdd-type", "--test")


@click.command(cls=suite_command("hdd", HDD_FLAGS))
@run_arguments
@tests_option("hdd", HDD_FLAGS)
@profile_option("tkperf-2.2", HDD_PROFILES)
@demand_options
@load_options
@size_option
@trust_options
@consent_options
@outlook_options
@result_options
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
    from tkperf.cli.run_options import read_options
    from tkperf.cli.session import run_session

    run_session(*read_options("hdd", options))


_target_option = option_about(Heading.TARGET)
RAID_FLAGS = ("-ssdt", "--ssd-type", "--test")


@click.command(cls=suite_command("raid", RAID_FLAGS))
@run_arguments
@_target_option(
    "-c",
    "--config",
    "raid",
    required=True,
    metavar="FILE",
    type=InputFile(".json"),
    help="raid.json: devices, raidlevel, type (sw_mdadm or hw_lsi), stripsize ...",
)
@_target_option("--remove-set", is_flag=True, help="Take the set down again after the run.")
@tests_option("raid", RAID_FLAGS)
@profile_option("pts-e-1.1")
@demand_options
@auto_demand_option
@load_options
@purge_options
@trust_options
@consent_options
@outlook_options
@result_options
def raid(**options: object) -> None:
    """Make a RAID set of whole drives and run the SSD tests on it. All its members are erased.

    DEVICE is the set's node: one to be made for sw_mdadm (/dev/md0), the one the virtual drive
    gets for hw_lsi (/dev/sdX). For each test the members are purged in parallel, the set is made
    anew and measured when its resync is done. Preconditioned are the members of sw_mdadm, before
    the set is made, and the set of hw_lsi. What is left out of raid.json is as in TKperf.

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
    from tkperf.cli.run_options import read_options
    from tkperf.cli.session import run_session

    run_session(*read_options("raid", options))
