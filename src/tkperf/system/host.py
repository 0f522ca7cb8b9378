"""The host of a run, disclosed in every report; None means not known."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def read_host(*, root: Path = Path("/")) -> dict[str, object]:
    """Return facts about the machine and its system, as plain data."""
    cpu = _cpu_info(root)
    return {
        "hostname": platform.node() or None,
        "operating_system": _os_name(root),
        "kernel": platform.release() or None,
        "kernel_command_line": _text(root / "proc/cmdline"),
        "cpu_model": cpu.get("model name"),
        "cpu_threads": os.cpu_count(),
        "cpu_governor": _text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memory_bytes": _memory_bytes(root),
        "motherboard": _joined(
            _text(root / "sys/class/dmi/id/board_vendor"),
            _text(root / "sys/class/dmi/id/board_name"),
        ),
        "bios": _text(root / "sys/class/dmi/id/bios_version"),
        "virtual_machine": "hypervisor" in (cpu.get("flags") or "").split() or None,
    }


def _cpu_info(root: Path) -> dict[str, str]:
    text = _text(root / "proc/cpuinfo") or ""
    pairs = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _os_name(root: Path) -> str | None:
    for line in (_text(root / "etc/os-release") or "").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return None


def _memory_bytes(root: Path) -> int | None:
    for line in (_text(root / "proc/meminfo") or "").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def _joined(*words: str | None) -> str | None:
    return " ".join(word for word in words if word) or None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None
