"""Claims of a data sheet or an earlier run, from their file. Printing is elsewhere, as reports do not need it."""

from __future__ import annotations

from pathlib import Path

from tkperf.analysis.claim_findings import Checked
from tkperf.analysis.claims import check_claims
from tkperf.analysis.claims_file import parse_claims
from tkperf.analysis.results import RunResult
from tkperf.model.input_files import CLAIMS_BYTES, read_text_input
from tkperf.pipeline.api import load


def require_claims(claims_file: Path) -> None:
    """Raise UsageError if a claims file cannot be read, whatever run it is for."""
    text = read_text_input(claims_file, what="the claims", limit_bytes=CLAIMS_BYTES)
    parse_claims(text, file=str(claims_file))


def read_and_check(claims_file: Path, result: RunResult) -> Checked:
    """Read a claims file and check a run against it.

    Raises:
        UsageError, RunFileError: the file, or the baseline that it names, cannot be read or checks nothing.
    """
    text = read_text_input(claims_file, what="the claims", limit_bytes=CLAIMS_BYTES)
    return check_claims(
        parse_claims(text, file=str(claims_file)),
        result,
        load=load,
        folder=claims_file.parent,
    )
