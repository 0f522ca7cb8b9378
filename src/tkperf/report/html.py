"""The report as one self-contained HTML file: no network, works from a mail attachment."""

from __future__ import annotations

import json
from functools import cache

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined

from tkperf.analysis.claims import Finding
from tkperf.analysis.results import RunResult
from tkperf.report.parts import ReportView
from tkperf.report.view import build_view

_DRAW = """
const ink = "#d0d7de", line = "#3d444d";
const dark = matchMedia("(prefers-color-scheme: dark)").matches && {
  background: "transparent",
  title: { color: ink },
  axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line },
  legend: { labelColor: ink, titleColor: ink },
};
for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const spec = JSON.parse(figure.querySelector("script").textContent);
  Object.assign(spec.config, dark || {});
  vegaEmbed(figure.querySelector(".chart"), spec, {
    actions: { export: true, source: false, compiled: false, editor: false },
    renderer: "svg",
  });
}
"""


def render_html(result: RunResult, findings: tuple[Finding, ...] = ()) -> str:
    """The report of a run as one page, with claims checked against it."""
    return render_view(build_view(result, findings))


def render_view(view: ReportView) -> str:
    """The whole page. Every text from outside is escaped; scripts come from the package."""
    environment = Environment(
        loader=PackageLoader("tkperf.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["script_json"] = _script_json
    template = environment.get_template("report.html.j2")
    return template.render(report=view, script=_chart_script())


def _script_json(value: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c").replace("&", "\\u0026")


@cache
def _chart_script() -> str:
    """Vega, Vega-Lite and the drawing code in one script."""
    # The bundle makes vegaEmbed global; it is the code that came with the package, no download.
    script: str = vl_convert.javascript_bundle() + _DRAW  # type: ignore[call-arg]  # the stub is too strict
    return script.replace("</script", "<\\/script")
