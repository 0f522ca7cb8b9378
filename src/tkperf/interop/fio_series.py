"""Results of fio, and the properties that the rounds of one series share.

Results are rounds of one series if they have the same workload, job, purpose, host, folder and conditions, and if they
ran together with the same loads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tkperf.interop.fio_documents import ALL_CLIENTS
from tkperf.interop.fio_options import is_rate_set, kb_base_of, parse_number, parse_time_s, pattern_of
from tkperf.interop.fio_together import ALONE, LoadsBeside, is_place_counted
from tkperf.interop.imported import family_of_file, family_of_folder, readable, split_path, without_round
from tkperf.model.choices import find_purposes, prepares
from tkperf.model.figures import LoadCaution
from tkperf.model.measurement import Measurement
from tkperf.model.workload import Workload

# Options that limit a load or change its distribution. They are part of the workload.
_LIMITS = (
    "rate",
    "rate_iops",
    "rate_process",
    "thinktime",
    "flow",
    "random_distribution",
    "percentage_random",
    "zonemode",
    "zonesize",
    "zoneskip",
    "rw_sequencer",
    "dedupe_percentage",
    "buffer_compress_percentage",
    "fsync",
    "fdatasync",
    "latency_target",
)
_USUAL = {"random_distribution": "random", "percentage_random": "100", "zonemode": "none"}
# Options that are excluded from the conditions of a series. Either these options do not affect the measurement, or
# other fields of the workload or the series already contain their values.
_OTHERWISE = frozenset(
    {
        "name",
        "description",
        "rw",
        "readwrite",
        "bs",
        "blocksize",
        "bsrange",
        "blocksize_range",
        "bssplit",
        "kb_base",
        "rwmixread",
        "rwmixwrite",
        "numjobs",
        "iodepth",
        "runtime",
        "timeout",
        "group_reporting",
        "stonewall",
        "wait_for",
        "new_group",
        "startdelay",
        "start_delay",
        "thread",
        "time_based",
        "randseed",
        "exec_prerun",
        "exec_postrun",
        "job_start_clock_id",
        "comm",
        "per_job_logs",
        "unit_base",
        "disk_util",
        "percentile_list",
        "lat_percentiles",
        "clat_percentiles",
        "slat_percentiles",
        "unified_rw_reporting",
        *_LIMITS,
    }
)
_OUTPUT = ("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "log_", "bwavgtime", "iopsavgtime")
# These texts become parts of section names, like names that the user chose.
ENDED_EARLY, BUFFERED = "ended early", "buffered I/O"
# I/O engines that use the page cache of the kernel unless ``direct=1`` is set (fio 3.42, engines/). The first engine is
# fio's default.
_CACHED_ENGINES = frozenset(
    {
        "psync",
        "sync",
        "vsync",
        "pvsync",
        "pvsync2",
        "libaio",
        "io_uring",
        "posixaio",
        "splice",
        "solarisaio",
        "windowsaio",
    }
)
# Engines that use no storage, and engines that change no data of a device.
_ENGINES_WITHOUT_DEVICE = frozenset(
    {
        "null",
        "cpuio",
        "net",
        "netsplice",
        "rdma",
        "exec",
        "filecreate",
        "filestat",
        "filedelete",
        "fileoperations",
        "dircreate",
        "dirstat",
        "dirdelete",
        "mkdir",
        "falloc",
        "ftruncate",
        "page_fault",
    }
)
# Files in memory, and devices that store no data. fio puts the value of ``directory`` before each file name.
_FILES_WITHOUT_DEVICE = re.compile(
    r"/+dev/+(null|zero|full|u?random|nullb\d+|ram\d+|zram\d+|shm(/.*)?)$|/+run/+shm(/.*)?$"
)
_RATES = ("rate", "rate_iops", "thinktime", "flow", "latency_target")
# A step shorter than this share of its runtime was stopped, or finished early.
WHOLE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesKey:
    """The properties that two results of a workload share if they are rounds of the same series.

    Attributes:
        always: texts that are always part of the section's name. Other texts are included only if they separate series.
        writes_amount: whether the job writes a given amount sequentially, without a runtime.
        beside: a full description of the loads that ran at the same time.
        cautions: reasons why the figures do not show the performance of the device alone.
    """

    always: tuple[str, ...]
    prepares: bool
    writes_amount: bool
    job: str
    host: str | None
    folder: str
    file: str
    runtime_s: float | None
    conditions: tuple[tuple[str, str], ...]
    beside: LoadsBeside = ALONE
    cautions: tuple[LoadCaution, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one workload in one fio run.

    Attributes:
        place: the number of the file, of the document in the file, and of the group in the document.
        written_ms: the time at which fio wrote the result.
        start: the address at which the load begins. None means that the address is part of the key.
        uneven: the times of the clones in words, if they ended at different times.
    """

    place: tuple[int, int, int]
    job: str
    workload: Workload
    series_key: SeriesKey
    measurement: Measurement
    version: str
    written_ms: float | None
    job_text: str
    start: str | None
    uneven: str | None

    @property
    def source(self) -> int:
        return self.place[0]


@dataclass(slots=True, kw_only=True)
class CellSeries:
    """The series of one cell: its rounds in the order of their numbers."""

    workload: Workload
    series_key: SeriesKey
    rounds: list[Result] = field(default_factory=list)
    numbers: tuple[int, ...] = ()
    section: str = ""

    @property
    def numbered(self) -> dict[int, Result]:
        """Return the results in ascending order of their round numbers. The number is the key."""
        return dict(zip(self.numbers, self.rounds, strict=True))


def build_series_key(
    *,
    file: str,
    jobname: str,
    host: str | None,
    options: Mapping[str, Any],
    threads: int,
    measurement: Measurement,
    beside: LoadsBeside = ALONE,
) -> SeriesKey:
    """Return the properties that a result shares with the other rounds of its series.

    Args:
        beside: the loads that ran at the same time.
    """
    folder, name = split_path(file)
    runtime_s = parse_time_s(options.get("runtime", options.get("timeout", "")))
    parent = folder.rpartition("/")[2]
    cautions: list[LoadCaution] = []
    always = [*find_purposes(jobname, name, folder=parent), *_limits(options)]
    if any(limit.partition("=")[0] in _RATES for limit in always):
        cautions.append(LoadCaution.RATE_LIMITED)
    if without := _find_no_device(options):
        always.append(without)
        cautions.append(LoadCaution.NO_DEVICE)
    elif _is_buffered(options):
        always.append(BUFFERED)
        cautions.append(LoadCaution.BUFFERED)
    if host == ALL_CLIENTS.lower():
        always.insert(0, host)
    if _is_cut_short(options, runtime_s, threads, measurement):
        always.append(ENDED_EARLY)
        cautions.append(LoadCaution.ENDED_EARLY)
    if beside.words:
        if beside.on_several_files:
            always.append(f"filename={readable(str(options.get('filename'))[:40])}")
        always.append(beside.words)
        cautions.append(LoadCaution.SHARED_LOAD)
    return SeriesKey(
        always=tuple(always),
        prepares=prepares(jobname, name, folder=parent, writes=measurement.write.ios > 0),
        writes_amount=runtime_s is None and pattern_of(options) == "write",
        job=without_round(jobname),
        host=host,
        folder=family_of_folder(folder),
        file=family_of_file(name),
        runtime_s=runtime_s,
        conditions=tuple(sorted(_conditions(options))),
        beside=beside,
        cautions=tuple(caution for caution in LoadCaution if caution in cautions),
    )


def _find_no_device(options: Mapping[str, Any]) -> str:
    """Return the option that shows that no drive was measured, such as ``ioengine=null``. An empty result means that no
    option shows this.
    """
    engine = str(options.get("ioengine", "")).strip()
    if engine in _ENGINES_WITHOUT_DEVICE:
        return f"ioengine={engine}"
    for name in ("directory", "filename"):
        files = str(options.get(name, "")).split(":")
        if files != [""] and all(_FILES_WITHOUT_DEVICE.match(file.strip()) for file in files):
            return f"{name}={readable(':'.join(files)[:40])}"
    return ""


def _is_buffered(options: Mapping[str, Any]) -> bool:
    """Return whether the job used the page cache of the host.

    If the options are not known, the function returns False. fio's default is ``direct=0``.
    """
    engine = str(options.get("ioengine", "psync")).strip()
    if not options or engine not in {*_CACHED_ENGINES, "mmap"}:
        return False
    is_direct = False
    # ``direct`` and ``buffered`` are two names of one option of fio. The last occurrence of either name applies.
    for name, value in options.items():
        if name in ("direct", "buffered"):
            is_on = str(value).strip().lower() not in ("0", "false", "no")
            is_direct = is_on == (name == "direct")
    return engine == "mmap" or not is_direct


def _limits(options: Mapping[str, Any]) -> Iterator[str]:
    for name in _LIMITS:
        value = str(options.get(name, "")).strip()
        is_set = is_rate_set(value) if name in _RATES else value not in ("", "0")
        if is_set and not value.startswith(_USUAL.get(name, "\0")):
            yield f"{name}={readable(value[:40])}"
    modifier = str(options.get("rw", options.get("readwrite", ""))).partition(":")[2]
    if modifier:
        yield f"rw with :{readable(modifier[:40])}"


def _is_cut_short(options: Mapping[str, Any], runtime_s: float | None, threads: int, measurement: Measurement) -> bool:
    """Return whether a job ran for less than its runtime, although no option ends it earlier.

    With ``time_based``, no amount ends a job (``keep_running`` in fio's backend.c). fio does not list ``time_based`` if
    it has no value. A job that transferred more than its amount therefore also counts as time-based.
    """
    if runtime_s is None or measurement.duration_s >= min(WHOLE * runtime_s, runtime_s - 0.1):
        return False
    if any(name in options for name in ("steadystate", "ss")):
        return False
    if str(options.get("time_based", "0")).strip() != "0":
        return True
    if "number_ios" in options:
        return False
    loops = parse_number(options.get("loops", "1")) or 1
    for name in ("io_size", "io_limit", "size"):
        text = str(options.get(name, ""))
        amount = None if "%" in text else parse_number(text, kb_base_of(options))
        if amount:
            share = measurement.bytes / (amount * threads * loops)
            return not 0.99 <= share <= 1.01
    return "loops" not in options


def _conditions(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    advances = start_of(options) is not None
    for name, value in options.items():
        if name == "offset" and advances:
            continue
        if name not in _OTHERWISE and not name.startswith(_OUTPUT):
            yield str(name), str(value).strip()


def start_of(options: Mapping[str, Any]) -> str | None:
    """Return the address at which a sequential load begins. None means that the load is random, or that the option
    ``offset`` is a share of the device.

    Each round of a throughput test begins where the previous round ended (PTS-E 1.1, throughput). A share, such as
    ``offset=50%``, is a place that the user chose.
    """
    return str(options.get("offset", "0")).strip() if is_place_counted(options) else None
