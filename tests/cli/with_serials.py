"""Run ``tkperf`` with a serial number for some loop devices: those over a file in the folder that the variable
``SERIALS_OF_FOLDER`` names. The serial number is the name of the file, without the suffix.

Other tests attach files with the same names at the same time. If their loop devices had serial numbers too, the serial
numbers would not be unique.
"""

from __future__ import annotations

import os
from pathlib import Path

from tkperf.device import identity
from tkperf.device.sysfs import text


def read_serial(disk: Path, properties: dict[str, str]) -> str | None:
    file = Path(text(disk / "loop/backing_file") or "")
    return file.stem if file.parent == Path(os.environ["SERIALS_OF_FOLDER"]) else None


if __name__ == "__main__":
    # All other modules import the function only after this assignment.
    identity.read_serial = read_serial
    from tkperf.cli.main import main

    main()
