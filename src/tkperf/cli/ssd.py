"""tkperf ssd: plan, show, ask, run, show the results."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tkperf.cli.options import SsdOptions, expand_lists
from tkperf.cli.session import run_session
from tkperf.engine.fio_setup import IO_ENGINES
from tkperf.procedures import SSD_TESTS
from tkperf.profiles import built_in_profiles


class _TkperfCommand(click.Command):
    """Accepts TKperf's ``-ssdt iops lat`` beside ``-ssdt iops -ssdt lat``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, expand_lists(args, ("-ssdt", "--ssd-type"), SSD_TESTS))


@click.command(cls=_TkperfCommand)
@click.argument("name")
@click.argument("device")
@click.option(
    "-nj",
    "--numjobs",
    "jobs",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Threads (TC) of every test but latency.",
)
@click.option(
    "-iod",
    "--iodepth",
    "io_depth",
    type=click.IntRange(1, 65536),
    metavar="N",
    help="Outstanding I/Os of each thread (QD).",
)
@click.option(
    "-rt",
    "--runtime",
    "step_s",
    metavar="SECONDS",
    type=click.FloatRange(min=1, max=86400),
    help="Length of each step and of each write-saturation slice.",
)
@click.option(
    "-ssdt",
    "--ssd-type",
    "tests",
    type=click.Choice(list(SSD_TESTS)),
    multiple=True,
    help="Tests to run, one or more; default all: iops lat tp writesat.",
)
@click.option(
    "--profile",
    default="pts-e-1.1",
    show_default=True,
    metavar="NAME|FILE",
    help=f"Which specification: {', '.join(built_in_profiles())}, or an own TOML file.",
)
@click.option(
    "--active-range",
    metavar="SHARE|SIZE",
    help="Part of the device to use, e.g. 75% or 16GiB; default: the profile's.",
)
@click.option("--size", metavar="SIZE", help="Create DEVICE as a scratch file of this size.")
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Folder for NAME.tkperf and NAME.log; default: here.",
)
@click.option(
    "--engine",
    "ioengine",
    type=click.Choice(IO_ENGINES),
    help="fio's I/O engine; default io_uring where it works, else libaio.",
)
@click.option(
    "-rfb",
    "--refill-buffers",
    is_flag=True,
    help="Fresh random data for every write; always on, accepted for TKperf's sake.",
)
@click.option(
    "-dsc",
    "--description",
    "description",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Text about the device for the report.",
)
@click.option(
    "-fm",
    "--feature-matrix",
    "feature_matrix",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Feature matrix of the device for the report.",
)
@click.option(
    "-ft",
    "--force-test",
    "--force",
    "force",
    is_flag=True,
    help="Do not ask before erasing. Never skips the check that the device is unused.",
)
@click.option(
    "--yes-destroy",
    metavar="ID",
    help="Confirm beforehand: the serial, or the path of a file or loop device.",
)
@click.option("--no-purge", is_flag=True, help="Skip purging; every result will say so.")
@click.option(
    "--progress",
    type=click.Choice(["auto", "live", "plain", "json"]),
    default="auto",
    show_default=True,
    help="Live view, plain lines, or one JSON event a line on stdout.",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress, only results.")
@click.option("-d", "--debug", is_flag=True, help="Every fio job in the log file.")
def ssd(**options: object) -> None:
    """Run the SSD tests on DEVICE and keep everything in NAME.tkperf. DEVICE is erased.

    DEVICE is a block device, a regular file (created with --size) or sim:PRESET, a simulated
    drive (sim:sata-ssd, sim:nvme-4kn, sim:unsteady) to rehearse with.

    \b
    Examples:
      tkperf ssd look ./scratch.img --size 1GiB --profile quick
      tkperf ssd D3-S4510 /dev/sdb -nj 4 -iod 32 -rfb
      tkperf ssd D3-S4510-lat /dev/sdb -ssdt lat --output results/
      tkperf ssd nightly /dev/sdb --yes-destroy PHYH850500YA960L --progress plain
    """
    options.pop("refill_buffers")
    run_session(SsdOptions(**options, command_line=tuple(sys.argv)))  # type: ignore[arg-type]
