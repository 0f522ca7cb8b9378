"""tkperf check: check a run against the claims of a data sheet or against an earlier run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from tkperf.cli.calling import Command
from tkperf.cli.kinds import RUN_FILE, InputFile, find_run_file_instead, offer_files
from tkperf.cli.suite_options import json_option, output_file
from tkperf.model.choices import BATCH_SUFFIX, RUN_FILE_SUFFIX
from tkperf.model.errors import RunFileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tkperf.cli.output import Outputs
    from tkperf.page.page import ReportView


_MORE = """A claim passes only if the value meets the limit and nothing makes the value doubtful. tkperf does not judge
a claim if the run has not ended, if the run file is damaged, or if the section of the value did not reach steady state.
Several files of one run count as one run. tkperf also prints the margin in standard uncertainties (sigma), and a note
if the limit lies within the uncertainty (95 %).

A claim can also contain these keys: at_most instead of at_least; section; direction (all, read, write). If several
workloads have the same mix and block size, these keys select one workload: access, zones, compressible_percent, region,
offered_iops, arrival, jobs, io_depth. A claim with not_found = true is met if tkperf does not find the value of the
metric in a test, for example if there are no spikes.

A table [[quantiles]] contains test, read_percent, block_size and within_us. For example,
within_us = { "99" = 500, "99.9" = 900 } claims that 99 % of the I/Os complete within 500 us, and 99.9 % within 900 us.
"""


class _CheckCommand(Command):
    """The command ``check``. If a call contains a single word, the command reports which file is missing. click itself
    would interpret this word as the claims file.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter:
            words, _, _ = self.make_parser(ctx).parse_args(given)
            raise click.UsageError(_describe_missing(words.get("claims_file")), ctx) from None


def _describe_missing(word: object) -> str:
    if not isinstance(word, str):
        return "a run file and a claims file (TOML) are missing"
    if (run_file := find_run_file_instead(word)) is None:
        return f"a run file is missing before the claims file {word[:80]}"
    return f"a claims file (TOML) is missing after {run_file}: tkperf check {run_file} data-sheet.toml"


def _require_claims_file(claims_file: Path) -> None:
    """Refuse a run file or a batch that was given instead of the claims file. The user may have forgotten the claims
    file after a pattern such as ``*.tkperf``.
    """
    run_file = find_run_file_instead(str(claims_file))
    if run_file is not None:
        kind = "batch" if run_file.endswith(BATCH_SUFFIX) else "run file"
        raise UsageError(
            f"{run_file} is a {kind}. The last argument of 'tkperf check' must be a claims file (TOML); see 'tkperf "
            "check --help'"
        )


@click.command(cls=_CheckCommand, epilog=_MORE)
@click.argument(
    "run_files",
    nargs=-1,
    required=True,
    type=RUN_FILE,
    # click interprets all further words as runs, so the claims file is among these words.
    shell_complete=lambda _context, _argument, begun: offer_files(begun, (RUN_FILE_SUFFIX, ".toml")),
)
@click.argument("claims_file", type=InputFile(".toml"))
@json_option
@output_file("junit", "Also write the outcomes as JUnit XML for CI systems; - means stdout.")
@output_file("html", "Also write the outcomes as an HTML page.")
@output_file("markdown", "Also write the outcomes as Markdown for wikis and mails.")
@click.option(
    "--require-confidence",
    is_flag=True,
    help="A claim also does not pass if the value meets the claim only within the uncertainty, or if the value has no "
    "uncertainty.",
)
def check(
    run_files: tuple[Path, ...], claims_file: Path, as_json: bool, require_confidence: bool, **files: Path | None
) -> None:
    """Check the claims in CLAIMS_FILE against RUN_FILES. Each claim is met, not met or not judged.

    For several runs, tkperf shows a matrix of runs and claims. If you name a batch (NAME.batch), tkperf checks all runs
    of the batch. If a metric or key is wrong, tkperf lists the metrics or keys that exist.

    The exit code is 0 if all claims pass, 1 if a claim does not pass, and 2 if tkperf could check nothing.

    \b
    Examples:
      tkperf check D3-S4510.tkperf data-sheet.toml
      tkperf check S4510-*.tkperf data-sheet.toml --html check.html
      tkperf check rack7.batch data-sheet.toml --junit result.xml

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
    from tkperf.cli.output import STDOUT, Outputs

    _require_claims_file(claims_file)
    if any(run_file.suffix == BATCH_SUFFIX for run_file in run_files):
        from tkperf.cli.batch_output import expand_batches

        run_files = expand_batches(run_files)
    outputs = Outputs((*files.values(), STDOUT if as_json else None), inputs=(*run_files, claims_file))
    work = _Work(claims_file, as_json, require_confidence, outputs, **files)
    if len(run_files) > 1:
        _check_many(run_files, work)
    else:
        _check_one(run_files[0], work)


class _Work(NamedTuple):
    """The claims to check, and the outputs for the result."""

    claims_file: Path
    as_json: bool
    require_confidence: bool
    outputs: Outputs
    junit_file: Path | None
    html_file: Path | None
    markdown_file: Path | None

    def show(self, view: ReportView, render_json: Callable[[], str], *, brief: bool = False) -> None:
        """Print the page or the document, and write the page to files."""
        from tkperf.render.export_markdown import render_markdown
        from tkperf.render.reports import render_html
        from tkperf.render.terminal.console import open_console
        from tkperf.render.terminal.page_text import print_check

        if self.as_json:
            click.echo(render_json())
        elif not self.outputs.on_stdout:
            print_check(view, open_console(), brief=brief)
        if self.markdown_file is not None:
            self.outputs.write(self.markdown_file, render_markdown(view))
        if self.html_file is not None:
            self.outputs.write(self.html_file, render_html(view))


def _check_one(run_file: Path, work: _Work) -> None:
    from tkperf.model.errors import ClaimsNotMetError
    from tkperf.model.units import format_count
    from tkperf.page.check import answer_claims, build_claims_page
    from tkperf.pipeline.api import load, read_and_check
    from tkperf.render.export_check import render_check_json, render_junit

    checked = read_and_check(work.claims_file, load(run_file))
    work.show(build_claims_page(checked), lambda: render_check_json(checked))
    if work.junit_file is not None:
        junit = render_junit(checked, confirmed=work.require_confidence)
        work.outputs.write(work.junit_file, junit)
    if checked.not_passed:
        raise ClaimsNotMetError(f"{run_file}: {'; '.join(answer_claims(checked).reasons)}")
    claims = format_count(len(checked.claim_results), "claim")
    if work.require_confidence and (doubted := len(checked.unconfirmed)):
        raise ClaimsNotMetError(
            f"{run_file}: all claims are met, but --require-confidence does not accept {doubted} of {claims}. In each "
            "claim that is not accepted, the value differs from the limit by less than its uncertainty, or the "
            "uncertainty is not known"
        )


def _check_many(run_files: tuple[Path, ...], work: _Work) -> None:
    from tkperf.analysis.claim_results import CheckedFile, fold_copies
    from tkperf.model.errors import ClaimsNotMetError
    from tkperf.page.check import answer_check, build_check_page
    from tkperf.pipeline.api import load, read_and_check, read_claims
    from tkperf.render.export_check import render_matrix_json, render_matrix_junit

    read_claims(work.claims_file)  # an error in the claims file does not count as an error in a run
    given = []
    for path in run_files:
        try:
            checked = read_and_check(work.claims_file, load(path))
            given.append(CheckedFile(file=str(path), checked=checked))
        except (RunFileError, UsageError) as error:
            given.append(CheckedFile(file=str(path), error=str(error)))
    files = fold_copies(given)
    work.show(build_check_page(files), lambda: render_matrix_json(files), brief=True)
    if work.junit_file is not None:
        junit = render_matrix_junit(files, confirmed=work.require_confidence)
        work.outputs.write(work.junit_file, junit)
    answer = "; ".join(answer_check(files).reasons)
    if not all(one.passes for one in files):
        raise ClaimsNotMetError(answer)
    if work.require_confidence and any(one.checked and one.checked.unconfirmed for one in files):
        raise ClaimsNotMetError(
            f"{answer}, but --require-confidence does not accept some claims. In these claims, the "
            "value differs from the limit by less than its uncertainty, or the uncertainty is not "
            "known"
        )
