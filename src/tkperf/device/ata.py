"""ATA security and sanitize as hdparm shows them.

Only the identify data counts, never the exit status: hdparm ends with status 0 even if the drive
knows none of these commands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tkperf.model.errors import EngineError
from tkperf.system.process import Completed, run_command

IDENTIFY_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AtaSecurity:
    """State of the security feature set, with the erase commands that the drive claims.

    ``enabled`` means that a password is set. The minutes are the drive's own estimates.
    ``sanitize`` has the sanitize commands that the drive claims.
    """

    supported: bool
    enabled: bool = False
    locked: bool = False
    frozen: bool = False
    enhanced_erase: bool = False
    erase_minutes: int | None = None
    enhanced_erase_minutes: int | None = None
    sanitize: frozenset[str] = frozenset()

    def describe(self) -> str:
        """Return the state for people, in the words of the field."""
        if not self.supported:
            return "ATA security not supported"
        states = [
            "password set" if self.enabled else "no password",
            "locked" if self.locked else "not locked",
            "frozen" if self.frozen else "not frozen",
        ]
        return "ATA security: " + ", ".join(states)


def read_security(path: str, *, run: Callable[..., Completed] = run_command) -> AtaSecurity:
    """Read the security state of an ATA drive.

    Raises:
        EngineError: hdparm is missing, hangs or prints no identify data.
    """
    done = run(["hdparm", "-I", path], timeout_s=IDENTIFY_LIMIT_S)
    return parse_identify(done.stdout, path=path)


def parse_identify(printed: str, *, path: str) -> AtaSecurity:
    """Parse the security section and the sanitize commands of ``hdparm -I``.

    Raises:
        EngineError: the text is not the identify data of an ATA drive.
    """
    if "Capabilities:" not in printed or "ATA device" not in printed:
        raise EngineError(f"'hdparm -I {path}' printed no identify data of an ATA drive")
    sanitize = frozenset(
        name
        for name in ("BLOCK_ERASE_EXT", "CRYPTO_SCRAMBLE_EXT", "OVERWRITE_EXT")
        if re.search(rf"^\s+\*\s+{name} command", printed, re.MULTILINE)
    )
    section = re.search(r"^Security:\s*\n((?:[ \t]+.*\n?)*)", printed, re.MULTILINE)
    if section is None:
        return AtaSecurity(supported=False, sanitize=sanitize)
    # Each line is "\t[not]\t<word>"; the word of a state is alone on its line.
    lines = [line.split() for line in section[1].splitlines()]
    true_words = {" ".join(words) for words in lines if words and words[0] != "not"}
    minutes = re.search(r"(\d+)min(?: or more)? for SECURITY ERASE UNIT", section[1])
    enhanced = re.search(r"(\d+)min(?: or more)? for ENHANCED SECURITY ERASE UNIT", section[1])
    return AtaSecurity(
        supported="supported" in true_words,
        enabled="enabled" in true_words,
        locked="locked" in true_words,
        frozen="frozen" in true_words,
        enhanced_erase="supported: enhanced erase" in true_words,
        erase_minutes=int(minutes[1]) if minutes else None,
        enhanced_erase_minutes=int(enhanced[1]) if enhanced else None,
        sanitize=sanitize,
    )
