"""tkperf ssd: plan, show, ask, run, show the results."""

from __future__ import annotations

import click

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
    trust_options,
)
from tkperf.cli.suites import suite_command, tests_option

FLAGS = ("-ssdt", "--ssd-type", "--test")


@click.command(cls=suite_command("ssd", FLAGS))
@run_arguments
@tests_option("ssd", FLAGS)
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
