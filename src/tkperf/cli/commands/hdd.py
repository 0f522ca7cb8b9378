"""tkperf hdd: measure a hard disk area by area."""

from __future__ import annotations

import click

from tkperf.cli.options import (
    consent_options,
    demand_options,
    load_options,
    outlook_options,
    profile_option,
    result_options,
    run_arguments,
    size_option,
    trust_options,
)
from tkperf.cli.suites import suite_command, tests_option
from tkperf.model.choices import HDD_PROFILES

FLAGS = ("-hddt", "--hdd-type", "--test")


@click.command(cls=suite_command("hdd", FLAGS))
@run_arguments
@tests_option("hdd", FLAGS)
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
