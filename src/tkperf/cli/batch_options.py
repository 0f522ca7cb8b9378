"""Options of a call of ``tkperf batch`` that are not the measurement's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tkperf.cli.run_options import RunOptions
from tkperf.cli.session import Leaving
from tkperf.model.batch import BATCH_SUFFIX
from tkperf.model.errors import UsageError
from tkperf.pipeline.batch.request import BatchDrive
from tkperf.pipeline.request import require_name


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """Place, views, consent and end of a batch.

    Attributes:
        yes_destroy_file: file with a line for each drive, which confirms them all beforehand.

    Raises:
        UsageError: NAME cannot be a file name, or options contradict each other.
    """

    name: str
    folder: Path
    yes_destroy_file: Path | None = None
    progress: str = "auto"
    quiet: bool = False
    debug: bool = False
    verbose: bool = False
    no_report: bool = False
    detach: bool = False
    rated: str | None = None
    warranty_years: float | None = None
    rate: str | None = None
    command_line: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_name(self.name)
        if self.detach and self.progress != "auto":
            raise UsageError(
                f"--detach leaves the terminal, so --progress {self.progress} has nowhere to go: "
                f"follow the batch with tkperf attach {self.path} --progress {self.progress}"
            )

    @property
    def path(self) -> Path:
        """The batch's book."""
        return self.folder / f"{self.name}{BATCH_SUFFIX}"

    @property
    def log_path(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def report_path(self) -> Path:
        return self.folder / f"{self.name}.html"

    @property
    def leaving(self) -> Leaving:
        return Leaving(
            name=self.name,
            kind="batch",
            path=self.path,
            log_path=self.log_path,
            wanted=self.detach,
            quiet=self.quiet,
        )

    def of_run(self, drive: BatchDrive) -> RunOptions:
        """Return the options of the run on one drive: it has no terminal, and its report is written with the batch's."""
        return RunOptions(
            name=drive.name,
            folder=self.folder,
            force=False,
            yes_destroy=None,
            progress="auto",
            quiet=True,
            debug=self.debug,
            no_report=True,
            detach=True,
            rated=self.rated,
            warranty_years=self.warranty_years,
            rate=self.rate,
            command_line=self.command_line,
        )
