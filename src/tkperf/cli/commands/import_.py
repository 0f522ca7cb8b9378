"""tkperf import: convert results of other tools to run files."""

from __future__ import annotations

from pathlib import Path

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import OUTPUT_FOLDER, InputFile
from tkperf.cli.standard_streams import complain

# The greatest number of kinds of warnings that the command line shows. The run file contains all warnings.
MOST_SHOWN = 12


@click.command("import", cls=Command)
@click.argument("files", nargs=-1, required=True, type=InputFile(".xml", ".json"))
@click.option(
    "--output",
    "folder",
    type=OUTPUT_FOLDER,
    default=Path(),
    metavar="DIR",
    help="Folder for the run files. Default: the current folder.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="Name of the run, if the files become one run. Default: the name in the XML file, the name of fio's first "
    "file, or the name of the folder.",
)
def import_(files: tuple[Path, ...], folder: Path, name: str | None) -> None:
    """Convert results of other tools into run files, so that you can report, compare and check them.

    Each result XML of TKperf 1.x to 2.2 becomes a run. All JSON files of fio together become one run. Results of the
    same job and workload become the rounds of this run, in the order of fio's time stamps. If you name a folder,
    tkperf reads all .json and .xml files below this folder.

    tkperf judges steady state again, and overwrites no file. tkperf skips results that it cannot use, and prints the
    reason. Every result has the notice IMPORTED. You can compare imported runs of fio with each other by workload, but
    not with tkperf's tests.

    \b
    Examples:
      tkperf import old/D3-S4510.xml                    writes D3-S4510.tkperf
      tkperf import rounds/*.json --name D3-S4510-fio   writes D3-S4510-fio.tkperf
      tkperf import D3-S4510                            writes D3-S4510.tkperf
    """
    from tkperf.cli.output import say_path
    from tkperf.pipeline import importing

    imported = importing.import_results(files, folder, name)
    for warning in imported.warnings[:MOST_SHOWN]:
        complain(f"warning: {warning.text}")
    if len(imported.warnings) > MOST_SHOWN:
        more = len(imported.warnings) - MOST_SHOWN
        complain(f"and {more} more kinds of warnings, in the run file")
    complain(imported.summary)
    for path in imported.paths:
        say_path(path)
