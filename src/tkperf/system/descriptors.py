"""Whether this process may open enough files: without them, a search for users of a device would
find nothing.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

from tkperf.model.errors import EngineError, TkperfError, is_lack_of_resources, reason_of


def require_descriptors(count: int, *, purpose: str, fault: type[TkperfError] = EngineError) -> None:
    """Check that this process can open ``count`` more files now.

    Args:
        purpose: what needs the files, for the message.

    Raises:
        EngineError: or ``fault``: the process cannot open them. The message names the reason and
            the limit to raise.
    """
    with ExitStack() as opened:
        for number in range(count):
            try:
                descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                if not is_lack_of_resources(error):
                    raise
                raise fault(
                    f"{purpose} needs {count} more open files, but only {number} are possible: {reason_of(error)}"
                ) from error
            opened.callback(os.close, descriptor)
