"""Names that the command line accepts, and limits for the numbers that the command line accepts.

Help, completion and the check of arguments need only the names. For this reason, this module does not import the tests,
drives and profiles to which the names refer. The modules of the tests, drives and profiles contain the same names, and
tests/model/test_choices.py compares the names in those modules with the names in this module.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class Offered(NamedTuple):
    """A test that the commands offer, with the suites to which the test belongs. A suite runs its tests in the order of
    ``OFFERED_TESTS``.
    """

    name: str
    suites: tuple[str, ...]
    by_default: bool = True


_FLASH = ("ssd", "raid")  # A RAID set is tested like one large SSD.
OFFERED_TESTS = (
    Offered("auto-demand", _FLASH, by_default=False),
    Offered("iops", _FLASH),
    Offered("lat", _FLASH),
    Offered("tp", _FLASH),
    Offered("writesat", _FLASH),
    Offered("cbw", _FLASH, by_default=False),
    Offered("dirth", _FLASH, by_default=False),
    Offered("hir", _FLASH, by_default=False),
    Offered("xsr", _FLASH, by_default=False),
    Offered("sweep", _FLASH, by_default=False),
    Offered("demand", _FLASH, by_default=False),
    Offered("qos", _FLASH, by_default=False),
    Offered("interference", _FLASH, by_default=False),
    Offered("neighbours", _FLASH, by_default=False),
    Offered("iops", ("hdd",)),
    Offered("tp", ("hdd",)),
)
# This name selects all tests that belong to the suite and that the profile defines.
ALL_TESTS = "all"

# Profiles that define the tests of hard disks. Every profile defines tests of SSDs.
HDD_PROFILES = ("quick", "tkperf-2.2")
DEFAULT_PROFILES = {"ssd": "pts-e-1.1", "hdd": "tkperf-2.2", "raid": "pts-e-1.1"}

SIMULATED = "sim:"
PRESETS = ("sata-ssd", "nvme-4kn", "client-tlc", "client-qlc", "hdd", "unsteady", "cliffs", "spikes-13min", "dying")

# The figures by which ``tkperf rank`` and the page of the library can rank drives. A comparison shows the figures in
# this order.
FIGURES = (
    *("random-read", "random-write", "random-mix", "large-read", "large-write"),
    *("single-read", "single-write", "kept-rate"),
)

# The I/O engines of fio. tkperf prefers the first of these engines.
FIO_IO_ENGINES = ("io_uring", "libaio")
# The I/O engines that the option --engine accepts.
IO_ENGINES = (*FIO_IO_ENGINES,)
WRITE_CACHE = ("on", "off", "keep")
NVME_PURGES = (
    "nvme-format",
    "nvme-format-crypto",
    "nvme-sanitize-block",
    "nvme-sanitize-crypto",
    "nvme-sanitize-overwrite",
)
ATA_PURGES = (
    "ata-sanitize-block",
    "ata-sanitize-crypto",
    "ata-sanitize-overwrite",
    "ata-security-erase",
    "ata-security-erase-enhanced",
)
SCSI_PURGES = ("scsi-sanitize-block", "scsi-sanitize-crypto", "scsi-sanitize-overwrite", "scsi-format")
KERNEL_PURGES = ("discard", "write-zeroes")
# Methods that the option --purge accepts. The order has no meaning.
PURGES = (*NVME_PURGES, *ATA_PURGES, *SCSI_PURGES, *KERNEL_PURGES)

# These limits are far beyond every useful value. The only purpose of the limits is to refuse typing errors.
MOST_JOBS = 1024
DEEPEST_QUEUE = 65_536
LONGEST_STEP_S = 86_400

RUN_FILE_SUFFIX = ".tkperf"
BATCH_SUFFIX = ".batch"

NO_BATCH_OF_SETS = (
    "a batch measures drives next to each other, and a RAID set is one device made of several: run 'tkperf raid'"
)


def tests_of(suite: str) -> dict[str, Offered]:
    """Return the tests that a suite offers, keyed by their names."""
    return {test.name: test for test in OFFERED_TESTS if suite in test.suites}


def built_in_profiles() -> tuple[str, ...]:
    """Return the names of the profiles shipped with tkperf."""
    return tuple(sorted(path.stem for path in profiles_folder().glob("*.toml")))


def profiles_folder() -> Path:
    return Path(__file__).parents[1] / "procedures/profiles"


# Each pattern matches the names that express a purpose. No pattern matches "preconditioned", because this word
# describes the state of a drive after preconditioning.
_PURPOSES = {
    "precondition": r"pre[-_ ]?cond(?!\w*ed(?![a-z]))|(?<![a-z])wipc(?![a-z])|workload[-_ ]?independent",
    "fill": r"(?<![a-z])((pre|seq|rand|rnd|over)[-_ ]?)?fill(s|ing|up)?(?![a-z])",
    "warm-up": r"warm(ing)?[-_ ]?up|(?<![a-z])warm(?![a-z])",
    "purge": r"purge|saniti[sz]e|secure[-_ ]?erase|(?<![a-z])(wipe|discard|trim)(?![a-z])",
}
# This pattern matches words about the state before the load, as in "randwrite-after-precond", "post-fill" and
# "no-trim".
_AFTERWARDS = r"(?<![a-z])(after|post|no|without)[-_ ].*"
# Workload-dependent preconditioning consists of the rounds that the PTS requires until steady state.
_ROUNDS = r"(?<![a-z])wdpc(?![a-z])|workload[-_ ]?dependent"
# These words describe conditions and not actions, for example in "read-warm" (in contrast to "read-cold"),
# "fill80-randwrite" and "steady-trim".
_CONDITIONS = r"(?<![a-z])(warm(?![-_ ]?up)|trim|discard|wipe|fill(ed)?[-_ ]?\d+)(?![a-z])"
# A folder may also be named after a drive or a condition. The name of a folder therefore expresses a purpose only if
# the whole name matches.
_FOLDER = r"wipc|pre[-_ ]?condition(ing)?|(pre[-_ ]?)?fill|warm[-_ ]?up|purge"


def find_purposes(*names: str, folder: str = "") -> tuple[str, ...]:
    """Return the purposes that the names of a load express, such as ``precondition`` or ``purge``. An empty result
    means that the load itself is the measurement.
    """
    lowered = [name.lower() for name in names]
    if any(re.search(_ROUNDS, name) for name in lowered):
        return ()
    if re.fullmatch(_FOLDER, folder.lower()):
        lowered.append(folder.lower())
    return tuple(purpose for purpose, pattern in _PURPOSES.items() if any(re.search(pattern, name) for name in lowered))


def prepares(*names: str, folder: str = "", writes: bool = True) -> bool:
    """Return whether the load with these names prepares the device. A name that only describes the state of the device
    is not sufficient.

    Args:
        writes: whether the load writes. A load without writes cannot fill or precondition a device, but can warm up a
            cache.
    """
    purposes = find_purposes(
        *(re.sub(f"{_AFTERWARDS}|{_CONDITIONS}", "", name.lower(), flags=re.DOTALL) for name in names), folder=folder
    )
    return bool(purposes) and (writes or "warm-up" in purposes)
