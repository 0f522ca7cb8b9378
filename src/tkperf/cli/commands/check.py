"""tkperf check: check a run against claims of a data sheet or an earlier run."""

from __future__ import annotations

from typing import Any

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import OUTPUT_FILE, RUN_FILE, InputFile


@click.command(cls=Command)
@click.argument("run_file", type=RUN_FILE)
@click.argument("claims_file", type=InputFile(".toml"))
@click.option("--json", "as_json", is_flag=True, help="As a JSON document for programs.")
@click.option(
    "--junit",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Also as JUnit XML, for CI systems; - is stdout.",
)
@click.option(
    "--require-confidence",
    is_flag=True,
    help="A claim that is met within the uncertainty of the value, or by a value that has none, fails, too.",
)
def check(**options: Any) -> None:
    """Check the claims in CLAIMS_FILE against RUN_FILE: met, not met, or not measured.

    Ends with 0 if all are met, with 1 if not, with 2 if nothing could be checked. Values alone decide; margins
    are also given in standard uncertainties (sigma), and it says where the limit lies within the uncertainty
    (95 %). A claim may also
    have at_most instead of at_least, section, direction (all, read, write), and the keys that separate workloads of
    one mix and block size apart: access, zones, compressible_percent, region, offered_iops, arrival, jobs, io_depth;
    not_found = true claims that the course of a test has no such value, as of spikes. [[quantiles]] has test, read_percent,
    block_size and within_us = { "99" = 500, "99.9" = 900 }: 99 % of the I/Os complete within 500 us, 99.9 % within 900 us.
    For a wrong metric or key tkperf lists those that exist.

    \b
    Example of a claims file:
      [[claim]]
      test = "iops"
      metric = "iops"
      read_percent = 100
      block_size = "4k"
      at_least = 75000
      source = "data sheet"
      [baseline]
      run = "last-firmware.tkperf"
      within_percent = 5
    """
    from tkperf.cli.check import check as act

    act(**options)
