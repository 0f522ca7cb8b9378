"""tkperf raid: make a RAID set of whole drives, measure it as one, and leave or remove it."""

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
    trust_options,
)
from tkperf.cli.suites import suite_command, tests_option

_target_option = option_about(Heading.TARGET)
FLAGS = ("-ssdt", "--ssd-type", "--test")


@click.command(cls=suite_command("raid", FLAGS))
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
@tests_option("raid", FLAGS)
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
