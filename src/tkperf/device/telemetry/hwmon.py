"""The temperature from the kernel: tkperf starts no program, but the kernel's driver asks the drive.

The kernel has it for NVMe drives if built with CONFIG_NVME_HWMON, for SATA drives with the module drivetemp.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tkperf.device.sysfs import find_nvme_controller, number, text
from tkperf.model.telemetry.numbers import read_temperature


class Thermometer:
    """The first sensor of a disk, which is its composite temperature."""

    def __init__(self, disk: Path) -> None:
        """Find the sensor of a disk, given its folder in sysfs."""
        self._folder = next(_find_folders(disk), None)

    @property
    def name(self) -> str | None:
        """The name of the kernel's driver; None: there is no thermometer."""
        return None if self._folder is None else text(self._folder / "name")

    @property
    def warning_c(self) -> float | None:
        return self._celsius("temp1_max")

    @property
    def critical_c(self) -> float | None:
        return self._celsius("temp1_crit")

    def read_c(self) -> float | None:
        """Read the temperature; None if there is no thermometer, or the drive does not answer just now."""
        return self._celsius("temp1_input")

    def _celsius(self, name: str) -> float | None:
        if self._folder is None:
            return None
        thousandths = number(self._folder / name)
        return None if thousandths is None else read_temperature(thousandths / 1000)


def _find_folders(disk: Path) -> Iterator[Path]:
    """Yield the hwmon folders of a disk.

    For NVMe, older kernels have them below the PCI function, newer ones below the controller.
    """
    places = [disk / "device"]
    controller = find_nvme_controller(disk)
    if controller is not None:
        places = [controller, controller / "device"]
    for place in places:
        for pattern in ("hwmon[0-9]*", "hwmon/hwmon[0-9]*"):
            for folder in sorted(place.glob(pattern)):
                if (folder / "temp1_input").exists():
                    yield folder
