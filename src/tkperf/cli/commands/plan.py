"""tkperf plan: estimate the time, the amount written and the used endurance of a run without executing the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tkperf.cli.calling import CommandGroup
from tkperf.cli.commands.batch import make_group
from tkperf.cli.commands.suites import hdd, raid, ssd

if TYPE_CHECKING:
    pass

HELP = """Estimate the run that '{run}' would measure with the same options.

    The output shows the phases, the time, the amount written and, with --rated, the used share of the endurance. To
    measure the speed, tkperf reads DEVICE for ten seconds, unless --rate or --like sets the speed.

    \b
    Examples:
      tkperf plan {suite} D3-S4510 {device} --rated 1DWPD --warranty-years 3
      tkperf plan {suite} D3-S4510 {device} --like earlier.tkperf
      tkperf plan {suite} D3-S4510 {device} --rate 480MB/s --json
    """


_OWN = (
    click.Option(["--no-probe"], is_flag=True, help="Assume 500MB/s instead of reading DEVICE."),
    click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON document for programs."),
)


@click.group(cls=CommandGroup)
def plan() -> None:
    """Estimate a run before it begins: its phases, its time, the amount written and the used share of a drive's
    endurance.

    'tkperf plan' accepts the options of the command whose run it estimates. tkperf opens DEVICE only for reading.
    """


def _add(command: click.Command, device: str) -> None:
    """Add a command to ``plan``. The command has its usual options and also the options of plans."""
    suite = str(command.name)

    def look(*, no_probe: bool, as_json: bool, **options: object) -> None:
        from dataclasses import replace

        from tkperf.cli.run_options import given_rates, rating_of, read_options
        from tkperf.pipeline.estimate_run import ASSUMED, estimate_run, probe_rates
        from tkperf.pipeline.run_plan import plan_run
        from tkperf.render.export_json import render_plan_json
        from tkperf.render.terminal.plans_and_profiles import print_plan

        request, run_options = read_options(suite, options)
        rating = rating_of(run_options)
        made = plan_run(request, look_only=True)
        rates = given_rates(run_options, made)
        if rates is None:
            # If the plan is impossible, this call raises an error before tkperf reads the device for ten seconds.
            estimate_run(made, ASSUMED, rating)
            rates = ASSUMED if no_probe else probe_rates(made.dut)
        estimate = estimate_run(made, rates, rating)
        if run_options.yes_destroy or run_options.force:
            estimate = replace(estimate, asks=False)
        if as_json:
            click.echo(render_plan_json(estimate, made.audit.as_plain_data()))
        else:
            print_plan(estimate)

    plan.add_command(
        type(command)(
            name=suite,
            params=[*command.params, *_OWN],
            callback=look,
            help=HELP.format(run=f"tkperf {suite}", suite=suite, device=device),
            short_help=f"Estimate 'tkperf {suite}' with the same options.",
        )
    )


for _command, _device in ((ssd, "/dev/sdb"), (hdd, "/dev/sdc"), (raid, "/dev/md0 -c raid.json")):
    _add(_command, _device)


def _look_at_batch(name: str, suite: str | None, options: dict[str, Any]) -> None:
    from tkperf.cli.run_options import read_batch

    no_probe, as_json = options.pop("no_probe"), options.pop("as_json")
    draft, batch_options = read_batch(name, suite, options)
    settled = draft.settle(name)
    if settled.request.hosts:
        from tkperf.cli.hosts_session import plan_batch_on_hosts

        request = settled.require_sound()
        click.echo(plan_batch_on_hosts(request, batch_options, no_probe=no_probe, as_json=as_json))
        return
    from tkperf.cli.batch_session import print_plan_of_batch

    print_plan_of_batch(settled, batch_options.of_run(name), no_probe=no_probe, as_json=as_json)


plan.add_command(
    make_group(
        _look_at_batch,
        run="plan ",
        own=_OWN,
        text="""Estimate the batch of 'tkperf batch' with the same arguments. tkperf measures nothing, writes
    nothing and asks no question.

    For each drive, the output shows the slot, the time, the amount written, the group and, with --rated, the used share
    of the endurance. The output also shows the budgets of shared links, and the faults for which tkperf would refuse
    the batch. --rate or --like sets the speed of the drives. Otherwise tkperf reads the first drive of each model and
    size for ten seconds. The exit code is 0 even if tkperf would refuse the batch.

    \b
    Examples:
      tkperf plan batch rack7 rack7.toml --rated 1DWPD
      tkperf plan batch rack7 ssd /dev/sdb /dev/sdc --rate 480MB/s --json
    """,
    )
)
