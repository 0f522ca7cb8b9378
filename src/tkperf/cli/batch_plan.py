"""The plan of a batch from the command line."""

from __future__ import annotations

import click

from tkperf.analysis.estimates import Rates
from tkperf.batch.batch_estimate import estimate_batch
from tkperf.batch.draft import Settled
from tkperf.cli.run_options import RunOptions, given_rates, rating_of
from tkperf.pipeline.estimate_run import ASSUMED, probe_each_model
from tkperf.pipeline.run_plan import RunPlan
from tkperf.render.export_json import render_batch_plan_json
from tkperf.render.terminal.plan_lines import print_batch_plan


def print_plan_of_batch(settled: Settled, run_options: RunOptions, *, no_probe: bool, as_json: bool) -> None:
    """Print the plan of a batch on stdout."""

    probe = probe_each_model()

    def find_rates(made: RunPlan) -> Rates:
        return given_rates(run_options, made) or (ASSUMED if no_probe else probe(made.dut))

    estimate = estimate_batch(settled, find_rates, rating_of(run_options))
    if as_json:
        click.echo(render_batch_plan_json(estimate))
    else:
        print_batch_plan(estimate)
