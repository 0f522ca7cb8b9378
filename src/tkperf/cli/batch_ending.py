"""Notification at the end of a batch. A failure is a line on stderr, and changes nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from tkperf.cli.batch_options import BatchOptions
from tkperf.cli.ending import MOST_ATTACHED_BYTES, begin_mail, run_notify_command, send_mail
from tkperf.cli.standard_streams import ended_by_signals, warning_of
from tkperf.model.batch_state import BatchState, DriveStage
from tkperf.model.units import format_count


def notify_of_batch(options: BatchOptions, state: BatchState, lines: Sequence[str]) -> None:
    """Send the mail, with the batch's page, and run the command that the user asked for. Never raises.

    Ctrl-C ends only the mail or the command that is under way.

    Args:
        lines: text of the mail.
    """
    if options.mail is not None:
        with (
            warning_of(f"the mail to {options.mail} was not sent through {options.smtp}"),
            ended_by_signals(once=False),
        ):
            dut = f"{state.name} {describe_outcome(state)}"
            message = begin_mail(options, dut, "\n".join(lines))
            page = options.report_path
            has_page = not options.no_report and page.is_file()
            if has_page and page.stat().st_size <= MOST_ATTACHED_BYTES:
                message.add_attachment(page.read_text("utf-8"), subtype="html", filename=page.name)
            send_mail(options, message)
    if options.notify_command is not None:
        values = {
            "{name}": options.name,
            "{status}": describe_outcome(state),
            "{run_file}": str(options.path.resolve()),
        }
        with warning_of("--notify-command did not end"), ended_by_signals(once=False):
            run_notify_command(options.notify_command, values)


def describe_outcome(state: BatchState) -> str:
    """Describe how far a batch has come: ``complete``, ``22 of 24 drives done``."""
    done = sum(drive.stage is DriveStage.DONE for drive in state.drives)
    if done == len(state.drives):
        return "complete"
    return f"{done} of {format_count(len(state.drives), 'drive')} done"
