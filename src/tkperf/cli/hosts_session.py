"""Run a batch over several hosts from the command line. Each host examines its drives. This machine asks one question
for all hosts, shows one view, and prints the results of all hosts together.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tkperf.batch.hosts.all_hosts import BatchHosts, plan_on
from tkperf.batch.hosts.messages import Options
from tkperf.batch.hosts.ssh import push_archive
from tkperf.batch.ledger import BatchLog, Ledger, read_batch
from tkperf.batch.request import BatchRequest
from tkperf.cli.batch_session import ask_for, choose_new, leave, print_held, until_it_begins, wait_for_ends
from tkperf.cli.batch_view import LOOK_EVERY_S, complain_in_thread, print_batch_result, shown_in_thread
from tkperf.cli.run_options import BatchOptions
from tkperf.cli.session import Departure, depart
from tkperf.cli.standard_streams import ended_by_signals
from tkperf.model.decoding import decode_json
from tkperf.model.errors import DeviceError, TkperfError, UsageError
from tkperf.render.export_json import encode_json


def _passed_on(options: BatchOptions) -> Options:
    """Return only those options that the hosts need."""
    return Options(**{key: getattr(options, key) for key in Options.__struct_fields__})


def run_batch_on_hosts(request: BatchRequest, options: BatchOptions) -> int:
    """Run ``tkperf batch`` over several hosts, and return the exit code."""
    choose_new(request, options)
    departure = depart(options)
    if options.push is not None:
        _push(options.push, request)
    return _conduct(request, options, departure)


def _push(archive: Path, request: BatchRequest) -> None:
    """Install tkperf on all hosts."""

    def push(host: str) -> str:
        try:
            push_archive(archive, host, request.tkperf)
        except DeviceError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(max_workers=len(request.hosts)) as pool:
        faults = list(filter(None, pool.map(push, request.hosts)))
    if faults:
        raise DeviceError("; ".join(faults))


def resume_batch_on_hosts(options: BatchOptions, *, without: Sequence[str] = ()) -> int:
    """Run ``tkperf resume NAME.batch`` over several hosts.

    Show the drives that are already being measured, and start all other drives after the user has consented.
    """
    departure = depart(options)
    ledger = Ledger.open(options.path)
    try:
        log = ledger.read()
        request = log.begun.request
        if unknown := sorted(set(without) - {drive.name for drive in request.drives}):
            raise UsageError(
                f"--without {unknown[0]}: the batch has no run with this name. Show the names with "
                f"'tkperf status {ledger.path}'"
            )
    except BaseException:
        ledger.close()
        raise
    return _conduct(request, options, departure, ledger, log, without)


def plan_batch_on_hosts(request: BatchRequest, options: BatchOptions, *, no_probe: bool, as_json: bool) -> str:
    """Return the plans of the hosts, one after the other. If a host cannot make a plan, return the reason instead."""

    def ask(host: str) -> str:
        try:
            return plan_on(host, request, _passed_on(options), no_probe=no_probe, as_json=as_json)
        except TkperfError as error:
            return f"{encode_json({'error': str(error)}) if as_json else error}\n"

    with ThreadPoolExecutor(max_workers=len(request.hosts)) as pool:
        texts = dict(zip(request.hosts, pool.map(ask, request.hosts), strict=True))
    if as_json:
        plans = {host: decode_json(text, object) for host, text in texts.items()}
        return encode_json({"schema": "tkperf-fleet-plan/1", "hosts": plans})
    return "\n".join(f"{host}\n\n{text}" for host, text in texts.items()).rstrip()


def _conduct(
    request: BatchRequest,
    options: BatchOptions,
    departure: Departure,
    ledger: Ledger | None = None,
    log: BatchLog | None = None,
    without: Sequence[str] = (),
) -> int:
    """Measure drives after the user has consented. ``ledger`` is the ledger of a batch that continues. The function
    closes this ledger before it returns.
    """
    with until_it_begins() as undone:
        if ledger is not None:
            undone.callback(ledger.close)
        hosts = BatchHosts(
            request,
            options.folder,
            _passed_on(options),
            events=options.progress == "json",
            warn=lambda text: complain_in_thread(f"tkperf: {text}"),
            log=log,
            without=without,
        )
        undone.callback(hosts.dismiss)
        if held := hosts.look():
            print_held(options, held, list(hosts.describe()))
            ask_for(options, [one.shown for one in held])
            # A host may have become unreachable while tkperf waited for the answer.
            hosts.require_sound()
        if ledger is None:
            ledger = Ledger.create(options.path, request, options.command_line)
            undone.callback(ledger.close)
        hosts.confirm(ledger)
    leave(departure)
    try:
        with ended_by_signals(once=False), shown_in_thread(options, lambda: hosts.watched):
            while not hosts.is_over:
                hosts.take(LOOK_EVERY_S)
    except KeyboardInterrupt:
        hosts.stop()
        wait_for_ends(lambda: hosts.is_over, hosts.take, options.path)
    finally:
        ledger.close()
    return print_batch_result(read_batch(options.path), options)
