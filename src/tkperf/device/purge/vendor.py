"""A vendor's own erasing tool that the user names (STEC and Intel have one)."""

from __future__ import annotations

import shlex

from tkperf.device.identity import TargetKind
from tkperf.device.permit import ErasePermit
from tkperf.device.purge.method import PurgeMethod, PurgeWatch, run_tool
from tkperf.model.errors import UsageError
from tkperf.system.process import find_program

# A vendor's tool may rewrite a large drive; no better limit is available.
VENDOR_LIMIT_S = 24 * 3600.0


def offer_command(command: str) -> PurgeMethod:
    """Return the command as a method; ``{device}`` in it becomes the device's path.

    Raises:
        UsageError: it names no device, is not a command line, or the program is missing.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--purge-command '{command}': {error}") from None
    if not words or not any("{device}" in word for word in words):
        raise UsageError(
            f"--purge-command '{command}' must name the device as {{device}}, for example "
            "'isdct delete -f -intelssd {device}'"
        )
    if find_program(words[0]) is None:
        raise UsageError(f"--purge-command: the program '{words[0]}' is not installed")

    def act(permit: ErasePermit, watch: PurgeWatch) -> None:
        device = permit.handle
        path = device.path
        # Many such tools open the device exclusively, as tkperf does.
        permit.lend()
        try:
            if permit.identity.kind is TargetKind.BLOCK:
                # Such tools look at names. The kernel gives this one to no other device meanwhile.
                path = permit.require_kernel_name()
            argv = [word.replace("{device}", path) for word in words]
            run_tool(
                permit.handle,
                argv,
                limit_s=VENDOR_LIMIT_S,
                on_tick=lambda: watch.progress(None),
                must_finish=True,
            )
        finally:
            permit.take_back()

    return PurgeMethod(name="command", title=f"command '{command}'", reads_zero=False, act=act)
