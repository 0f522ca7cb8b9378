"""Reports as pages. They need more than the base install, so only this module loads them, late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tkperf.analysis.claims import Finding
from tkperf.analysis.compare import Comparison
from tkperf.analysis.results import RunResult
from tkperf.errors import UsageError


def render_run_html(result: RunResult, findings: tuple[Finding, ...]) -> str:
    """Raises UsageError if the packages for reports are missing; so do all below."""
    with _packages():
        from tkperf.report.html import render_html  # noqa: PLC0415
    return render_html(result, findings)


def render_run_pdf(result: RunResult, findings: tuple[Finding, ...]) -> bytes:
    with _packages():
        from tkperf.report.pdf import render_pdf  # noqa: PLC0415
    return render_pdf(result, findings)


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
