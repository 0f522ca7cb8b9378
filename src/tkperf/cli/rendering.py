"""Reports as pages. They need more than the base install, so only this module loads them, late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tkperf.analysis.claims import Finding
from tkperf.analysis.compare import Comparison
from tkperf.analysis.details import CellDetail
from tkperf.analysis.results import RunResult
from tkperf.errors import UsageError


def render_run(
    result: RunResult,
    findings: tuple[Finding, ...],
    details: Sequence[CellDetail],
    *,
    html: bool,
    pdf: bool,
) -> tuple[str | None, bytes | None]:
    """The HTML and the PDF of a run, None where not asked for.

    Raises:
        UsageError: the packages for reports are missing; so do all below.
    """
    with _packages():
        from tkperf.report.html import render_view  # noqa: PLC0415
        from tkperf.report.pdf import render_run_pdf  # noqa: PLC0415
        from tkperf.report.view import build_view  # noqa: PLC0415
    view = build_view(result, findings, details)
    return (
        render_view(view) if html else None,
        render_run_pdf(view, result) if pdf else None,
    )


def render_comparison_html(comparison: Comparison) -> str:
    with _packages():
        from tkperf.report.comparison import build_comparison_view  # noqa: PLC0415
        from tkperf.report.html import render_view  # noqa: PLC0415
    return render_view(build_comparison_view(comparison))


def render_comparison_pdf(comparison: Comparison) -> bytes:
    with _packages():
        from tkperf.report.comparison import build_comparison_view  # noqa: PLC0415
        from tkperf.report.pdf import render_view_pdf  # noqa: PLC0415
    view = build_comparison_view(comparison)
    (runs,) = (facts for _, facts in view.disclosure)
    return render_view_pdf(view, header=(("Runs", ", ".join(name for name, _ in runs)),),
                           footer="tkperf compare")  # fmt: skip


@contextmanager
def _packages() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise UsageError(
            f"reports need more packages ({error.name} is missing): pip install 'tkperf[report]'"
        ) from error
