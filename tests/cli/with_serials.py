"""Run ``tkperf`` with a serial number for each loop device. The serial number is the name of the file behind the
device, without the suffix.
"""

from __future__ import annotations

from pathlib import Path

from tkperf.device import identity


def read_serial(disk: Path, properties: dict[str, str]) -> str | None:
    behind = disk / "loop/backing_file"
    return Path(behind.read_text("utf-8").strip()).stem if behind.exists() else None


if __name__ == "__main__":
    for module in (identity, identity, identity):
        module.read_serial = read_serial  # type: ignore[attr-defined]
    from tkperf.cli.main import main

    main()
