"""Everything fixed before the first I/O, as the run file keeps it."""

from __future__ import annotations

from datetime import UTC, datetime

from tkperf import __version__
from tkperf.cli.equipment import Equipment
from tkperf.cli.options import RunOptions
from tkperf.cli.preparation import Preparation
from tkperf.device.identity import TargetKind
from tkperf.host import read_host
from tkperf.record import RunInfo

FILE_NOTICE = (
    "FILE TARGET: measured through a file system on a scratch file, not on a device of its own"
)
SIMULATED_NOTICE = "SIMULATED: these numbers come from a model, no device was measured"
# Whether I/O of others on the device can be told from the test's.
OTHER_IO = {
    TargetKind.BLOCK: "watched: fio's bytes are compared with the device's own counters",
    TargetKind.FILE: "not comparable: a file has no counters of its own",
    TargetKind.SIMULATED: "not comparable: a simulated drive has no counters",
}
NO_PURGE_NOTICE = "NOT PURGED: the device was not put in as-new state before each test (--no-purge)"


def build_run_info(options: RunOptions, preparation: Preparation, equipment: Equipment) -> RunInfo:
    """Disclosure of a run about to begin."""
    kind = preparation.identity.kind
    notices = (
        SIMULATED_NOTICE if kind is TargetKind.SIMULATED else "",
        FILE_NOTICE if kind is TargetKind.FILE else "",
        preparation.profile.notice,
        NO_PURGE_NOTICE if options.no_purge else "",
    )
    return RunInfo(
        name=options.name,
        suite=options.suite,
        tkperf_version=__version__,
        fio_version=equipment.engine.version,
        engine=equipment.ioengine,
        command_line=options.command_line,
        started_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        profile_name=preparation.profile.name,
        profile=preparation.profile.as_plain_data(),
        options={
            "jobs": options.jobs,
            "io_depth": options.io_depth,
            "step_s": options.step_s,
            "active_range": options.active_range,
            "write_cache": options.write_cache,
            "purge": options.purge_method,
            "purge_command": options.purge_command,
            "no_purge": options.no_purge,
        },
        device={
            **preparation.facts.plain(),
            "write_cache_in_run": equipment.write_cache,
            "other_io": OTHER_IO[kind],
        },
        host=read_host(),
        active_range_offset_bytes=preparation.active_range.offset_bytes,
        active_range_length_bytes=preparation.active_range.length_bytes,
        device_description=options.description,
        feature_matrix=options.feature_matrix,
        notices=tuple(notice for notice in notices if notice),
    )
