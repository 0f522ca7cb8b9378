"""tkperf rank: rank the drives of many runs according to one figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import RUNS
from tkperf.cli.standard_streams import complain
from tkperf.cli.suite_options import json_option, output_file
from tkperf.model.choices import BATCH_SUFFIX, FIGURES
from tkperf.model.errors import RunFileError, UsageError, guess

if TYPE_CHECKING:
    from tkperf.analysis.comparing.run_figures import RunFigures

# Facts with which a user can select drives or runs. The names also exist in the analysis. They are repeated in this
# module, so that --help does not load the analysis.
FACTS = ("model", "firmware", "capacity", "interface", "form", "profile")


@click.command(cls=Command)
@click.argument("runs", nargs=-1, required=True, type=RUNS)
@click.option(
    "--by",
    "figure",
    type=click.Choice(FIGURES),
    metavar="FIGURE",
    default=FIGURES[0],
    help=f"Figure by which tkperf ranks the drives: {FIGURES[0]} (default), {', '.join(FIGURES[1:-1])} or "
    f"{FIGURES[-1]}.",
)
@click.option(
    "--only",
    "only",
    multiple=True,
    metavar="NAME=TEXT",
    help=f"Rank only drives with this fact. You can repeat this option. NAME is {', '.join(FACTS[:-1])} or "
    f"{FACTS[-1]}.",
)
@json_option
@output_file("csv", "Also write the ranking as CSV; - means stdout.")
@output_file("html", "Also write the ranking as one HTML file.")
@output_file("markdown", "Also write the ranking as Markdown for wikis and mails.")
def rank(
    runs: tuple[Path, ...],
    figure: str,
    only: tuple[str, ...],
    as_json: bool,
    csv_file: Path | None,
    html_file: Path | None,
    markdown_file: Path | None,
) -> None:
    """Rank the drives of RUNS by a figure. RUNS are run files, batches, and folders with run files in or below them.

    tkperf ranks only values that were measured under equal conditions. A second list contains all other runs, each with
    the reason why it is not ranked. If a drive has several runs, tkperf uses the newest run. Simulated drives are never
    ranked among real drives.

    \b
    Examples:
      tkperf rank /srv/results
      tkperf rank /srv/results --by single-write --only interface=NVMe
      tkperf rank /srv/results --by kept-rate --only capacity=960GB --html kept.html
      tkperf rank D1.tkperf D2.tkperf rack7.batch --json | jq '.ranked[].run'
    """
    from tkperf.analysis.comparing.ranking import rank_runs
    from tkperf.cli.output import STDOUT, Outputs
    from tkperf.page.comparison.ranking_page import build_ranking_page
    from tkperf.pipeline.run_folders import expand_folders
    from tkperf.render.export_comparison import build_ranking_table, render_ranking_json
    from tkperf.render.export_markdown import render_markdown
    from tkperf.render.export_tables import render_csv
    from tkperf.render.reports import render_html, require_packages
    from tkperf.render.terminal.console import open_console
    from tkperf.render.terminal.page_text import print_page

    wanted = _parse_facts(only)
    if any(path.suffix == BATCH_SUFFIX and not path.is_dir() for path in runs):
        from tkperf.cli.batch_output import expand_batches

        runs = expand_batches(runs)
    run_files = expand_folders(runs)
    if as_json and STDOUT in (csv_file, html_file, markdown_file):
        raise UsageError(
            "--json also writes to stdout, and only one output can be written there. Name a file instead of -"
        )
    outputs = Outputs((csv_file, html_file, markdown_file), inputs=run_files)
    if html_file is not None:
        require_packages()
    found = _read(run_files)
    chosen = [run for run in found if all(_fact_of(run, name) == text for name, text in wanted)]
    if not chosen:
        raise UsageError(f"none of these {len(found):,} runs has {' and '.join(only)}: {_list_known(found, wanted)}")
    ranking = rank_runs(chosen, figure.replace("-", "_"))
    view = build_ranking_page(ranking)
    if csv_file is not None:
        outputs.write(csv_file, render_csv(build_ranking_table(ranking)))
    if html_file is not None:
        outputs.write(html_file, render_html(view))
    if markdown_file is not None:
        outputs.write(markdown_file, render_markdown(view))
    if as_json:
        click.echo(render_ranking_json(ranking))
    elif not outputs.on_stdout:
        from dataclasses import replace

        # The overview is omitted. A terminal cannot fold it, and it would list all runs a second time.
        print_page(replace(view, overview=()), open_console())


def _read(run_files: Sequence[Path]) -> list[RunFigures]:
    """Return the figures of the runs. If a file cannot be read, print a warning and continue with the other files."""
    from tkperf.pipeline.result_cache import read_figures

    found: list[RunFigures] = []
    failed: list[RunFileError] = []
    for path in run_files:
        try:
            found.append(read_figures(path))
        except RunFileError as error:
            failed.append(error)
    for each in failed if found else failed[:-1]:
        complain(f"tkperf: left out: {each}")
    if not found:
        raise failed[-1]
    return found


def _parse_facts(only: Sequence[str]) -> list[tuple[str, str]]:
    pairs = []
    for text in only:
        name, equals, value = text.partition("=")
        if not equals or name not in FACTS:
            raise UsageError(
                f"--only '{text[:80]}' does not have the form NAME=TEXT. NAME is one of "
                f"{', '.join(FACTS)}{guess(name, FACTS)}"
            )
        pairs.append((name, _compact(value)))
    return pairs


def _fact_of(run: RunFigures, name: str) -> str:
    """Return a fact about a run in the form that ``--only`` compares."""
    return _compact(_show_fact(run, name))


def _show_fact(run: RunFigures, name: str) -> str:
    from tkperf.page.comparison.decision_texts import name_size
    from tkperf.page.facts import NOT_KNOWN_TEXT

    device = run.device
    match name:
        case "profile":
            value: object = run.profile_name
        case "form":
            value = device.get("form_factor")
        case "capacity":
            size = device.get("capacity_bytes")
            value = name_size(size) if isinstance(size, int) else None
        case _:
            value = device.get(name)
    return NOT_KNOWN_TEXT if value is None else str(value)


def _compact(text: str) -> str:
    """Return a text in lower case and without blanks, so that ``960 GB`` equals ``960gb``."""
    return "".join(text.split()).casefold()


def _list_known(runs: Sequence[RunFigures], wanted: Sequence[tuple[str, str]]) -> str:
    """Return a list of the values that exist for the requested facts."""
    most = 6
    texts = []
    for name in dict.fromkeys(name for name, _ in wanted):
        known = sorted({_show_fact(run, name) for run in runs})
        more = f" and {len(known) - most} more" if len(known) > most else ""
        texts.append(f"{name} is {', '.join(known[:most])}{more}")
    return "; ".join(texts)
