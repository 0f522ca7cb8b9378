"""Fate of fio's options: carried over, not carried over, refused."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.interop.fio_jobfile.job_files import JOBS, NAMES, convert, convert_file
from tkperf.interop.fio_jobfile.convert import OptionsRefusedError
from tkperf.interop.fio_jobfile.job_sections import ALIASES, CARRIED_OVER, REFUSED, WITHOUT_EFFECT

TIMED = "direct=1\nioengine=libaio\ntime_based\nruntime=60\n"


def load_of(options: str) -> dict[str, Any]:
    """The load of a job with these options."""
    written, _ = convert(f"[a]\n{TIMED}{options}\n")
    load = tomllib.loads(written)["loads"]["a"]
    assert isinstance(load, dict)
    return load


def refusals_of(text: str) -> list[str]:
    with pytest.raises(OptionsRefusedError) as raised:
        convert(text)
    return [str(refusal) for refusal in raised.value.refusals]


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        ("rw=randrw", "read_percent", 50),
        ("rw=randrw\nrwmixwrite=30", "read_percent", 70),
        ("rw=write\nrwmixread=30", "read_percent", 0),
        ("rw=rw", "access", "sequential"),
        ("bs=512", "block_size_kib", 0.5),
        ("bs=1m", "block_size_kib", 1024),
        ("bs=4k,8k\nrw=randwrite", "block_size_kib", 8),
        ("bs=4kib\nkb_base=1000", "block_size_kib", 4),
        ("bsrange=16k-16k", "block_size_kib", 16),
        ("bssplit=4k/50:8k/", "block_shares", [[4, 50], [8, 50]]),
        ("rw=randread\nrandom_distribution=zoned:50/5:30/15:20/", "zone_shares", [[50, 5], [30, 15], [20, 80]]),
        ("iodepth=7", "io_depth", 7),
        ("ioengine=sync\niodepth=7", "io_depth", 1),
        ("rw=randread\nnumjobs=3", "jobs", 3),
        ("rw=randread\nnumjobs=3\nrate_iops=100", "offered_iops", 300),
        ("rw=randrw\nrate_iops=100", "offered_iops", 200),
        ("rw=read\nrate_iops=100,50", "offered_iops", 100),
        ("rate_iops=100\nrate_process=poisson", "arrival", "poisson"),
        ("rw=write\nbuffer_compress_percentage=30", "compressible_percent", 30),
        ("offset=25%\nsize=50%", "range_begin_percent", 25),
        ("offset=25%\nsize=50%", "range_end_percent", 75),
    ],
)
def test_what_is_kept(options: str, key: str, value: object) -> None:
    """Each option is stored under its key in the meaning that fio gives it."""
    assert load_of(options)[key] == value


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("verify=crc32c", "checking data takes time and reads that would count as load"),
        ("fsync=1", "it makes the device do other work than the reads and writes that tkperf counts"),
        (
            "exec_prerun=touch x",
            "fio would run a command, a trace or a program of its own; tkperf runs none of a job file",
        ),
        ("rate=10m", "offered rates are in IOPS: divide by the block size and write rate_iops"),
        ("rw=randtrim", "tkperf's loads read and write; they do not trim"),
        ("rw=read:8k", "addresses of tkperf are random or sequential; it skips none"),
        ("rw=sideways", "it is one of read, write, randread, randwrite, rw, readwrite, randrw"),
        ("bs=4q", "it is a size such as 4k, 1m or 4096"),
        ("bs=4.5k", "it is a size such as 4k, 1m or 4096"),
        ("bs=1000", "a block size is a multiple of 512 bytes, 16 MiB at most"),
        ("bssplit=4k/50:8k/60", "its percentages do not add up to 100"),
        ("bsrange=4k-64k", "tkperf draws no sizes from a range; write the sizes as bssplit=4k/50:8k/50"),
        ("bs=٤k", "it is a size such as 4k, 1m or 4096"),
        ("iodepth=٣", "it is a whole number from 1 to 65,536"),
        ("runtime=٦٠", "it is a time such as 60, 90s, 5m or 1h"),
        ("iodepth=0", "it is a whole number from 1 to 65,536"),
        ("ioengine=mmap", "tkperf uses io_uring or libaio"),
        (
            "size=10g",
            "a workload file has parts of the range in percent: write ..%, or take it out, and "
            "give the range itself to the run with --active-range",
        ),
        ("size=110%", "it is a whole number from 0 to 100"),
        ("runtime=1h30m", "it is a time such as 60, 90s, 5m or 1h"),
        ("thinktime=100", "the device would wait between I/Os by fio's rules; offer a rate with rate_iops"),
        ("time_based=yes", "it is 1 or 0"),
        ("filename=/dev/sda:/dev/sdb", "it names several files; tkperf measures one DEVICE"),
    ],
)
def test_what_is_refused(option: str, reason: str) -> None:
    """An option that cannot be converted is refused in one line with file, line, job, option and reason."""
    assert refusals_of(f"[a]\n{TIMED}{option}\n") == [f"a.fio, line 6, [a], {option}: {reason}"]


@pytest.mark.parametrize(
    ("text", "given", "reason"),
    [
        (
            "[a]\nruntime=1\nrw=read\n",
            "direct=0 (fio's default)",
            "buffered I/O measures the host's memory, tkperf's is always direct: write direct=1 if that is meant",
        ),
        (
            f"[a]\n{TIMED}rw=write\nnumjobs=4\n",
            "offset_increment=0 (fio's default: all threads go over the same addresses)",
            "4 sequential threads of tkperf have a part of the range each; fio's have with size=25% and "
            "offset_increment=25%",
        ),
        (
            f"[a]\n{TIMED}rw=randread\nbssplit=8k/50:64k/50\n",
            "blockalign=8k (fio's default)",
            "I/Os begin at multiples of 8k, those of tkperf at multiples of 4k: write blockalign=4k",
        ),
        (
            "[a]\ndirect=1\nrw=randwrite\n",
            "no runtime",
            "a load of tkperf runs for a time, unless it writes all of the range in order: write "
            "runtime=.. and time_based=1",
        ),
        (
            "[a]\ndirect=1\nrw=write\n",
            "no runtime",
            "it only fills the range, and nothing is measured after it: write runtime=.. and "
            "time_based=1 if it is to be measured",
        ),
    ],
)
def test_a_default_of_fios_is_refused_like_an_option(text: str, given: str, reason: str) -> None:
    """A default of fio that cannot be converted is refused like an option."""
    assert refusals_of(text) == [f"a.fio, line 1, [a], {given}: {reason}"]


def test_jobs_at_the_same_time_are_refused() -> None:
    """Jobs that run at the same time are refused. The error names the two ways out, and with stonewall the second job
    follows the first.
    """
    text = f"[global]\n{TIMED}rw=randread\n[a]\n[b]\nbs=8k\niodepth=4\n"
    assert refusals_of(text) == [
        "a.fio, line 8, [b], no stonewall: it runs at the same time as [a], and tkperf runs one load at "
        "a time: write stonewall into it if it is to follow, or numjobs into one if both are the same load"
    ]
    written, _ = convert(text.replace("[b]\n", "[b]\nstonewall\n"))
    assert [phase["load"] for phase in tomllib.loads(written)["phases"]] == ["a", "b"]


def test_all_refusals_are_found_at_once() -> None:
    """The message names the remedy."""
    with pytest.raises(OptionsRefusedError) as raised:
        convert("[a]\nruntime=1\nverify=md5\nsize=1g\n[b]\nstonewall\nruntime=1\nsync=1\n")
    assert str(raised.value) == (
        "a.fio: 5 options cannot be kept, nothing was written: change them in the job file, or take them out"
    )


def test_streams_are_cut_into_slices_without_a_rest() -> None:
    """Warm-up and stream are whole numbers of slices, however long."""
    for runtime, ramp, slice_s in (
        ("60", "0", 10),
        ("2h", "10m", 60),
        ("3", "1", 1),
        ("90", "5", 5),
        ("500ms", "0", 0.5),
        ("7", "0", 1),
        ("1300ms", "0", 0.1),
    ):
        text = f"[a]\n{TIMED}runtime={runtime}\nramp_time={ramp}\n"
        (phase,) = tomllib.loads(convert(text)[0])["phases"]
        assert phase["slice_s"] == slice_s


def test_a_fill_precedes_what_is_measured() -> None:
    """``loops`` are its passes."""
    fill, stream = tomllib.loads(convert_file("fill-then-random")[0])["phases"]
    assert fill == {"kind": "fill", "load": "precondition", "passes": 2}
    assert (stream["kind"], stream["longest_s"]) == ("stream", 1800)


def test_odd_names_stay_text() -> None:
    """The text of a job file becomes only comments and strings."""
    name = 'a"\\ \x1b[2J é]\t'
    text = f"[{name}]\n{TIMED}description=\x07x\n"
    document = tomllib.loads(convert(text, file='b"\n.fio')[0])
    assert list(document["loads"]) == ['a"\\ [2J é]']
    assert document["title"] == 'fio job file b" .fio'


def test_any_other_option_is_named() -> None:
    """The output names every option that was not carried over, even if tkperf does not know it or if it has no effect
    in this job.
    """
    text = f"[global]\n{TIMED}rw=randread\nnew_in_fio=3\n[a]\nverify=0\nrwmixread=70\n[b]\nstonewall\n"
    written, options = convert(text)
    left = [line for line in options if line.startswith("not carried over: ")]
    assert left == [
        "not carried over: ioengine=libaio (all jobs)",
        "not carried over: new_in_fio=3 (all jobs)",
        "not carried over: rwmixread=70 ([a])",
    ]
    assert set(options) <= {line[2:] for line in written.splitlines()}


def test_a_waiting_engine_has_no_queue() -> None:
    """The iodepth of an engine that waits for each I/O is not carried over. The output says why the depth is 1."""
    _, options = convert(f"[a]\n{TIMED}iodepth=32\nioengine=sync\n")
    assert "not carried over: iodepth=32 ([a])" in options
    assert "carried over: ioengine=sync -> io_depth, which is 1 as this engine waits for each I/O ([a])" in (options)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_accounted_for(name: str) -> None:
    """No option of a file goes without a word, but for those that change nothing."""
    named = {line.partition(": ")[2].partition("=")[0].partition(" ")[0] for line in convert_file(name)[1]}
    text = (JOBS / f"{name}.fio").read_text()
    given = set(re.findall(r"^\s*(?!include)([a-z_]+)", text, re.MULTILINE))
    at_its_default = {"verify", "iodepth_batch"}
    overridden = {"blocksize"} if name == "odd-spelling" else set()
    silent = WITHOUT_EFFECT | at_its_default | overridden | {"blockalign"}
    assert given - silent <= named


def test_no_option_has_two_fates() -> None:
    """An option is carried over, has no effect or is refused. No option is in two of these tables."""
    assert not CARRIED_OVER.keys() & REFUSED.keys()
    assert not WITHOUT_EFFECT & (CARRIED_OVER.keys() | REFUSED.keys())


# Options that exist in fio 3.42 but not in fio 3.33, and options that were renamed between these
# versions. The old name of such an option became an alias.
NEWER = {
    "comm",
    "dataplacement",
    "dp_scheme",
    "end_syncfs",
    "fdp",
    "job_start_clock_id",
    "libaio_vectored",
    "log_issue_time",
    "log_window_value",
    "num_range",
    "plid_select",
    "plids",
    "priohint",
    "ramp_size",
    "readfua",
    "sprandom",
    "thinkcycles",
    "uncached",
    "write_mode",
    "writefua",
}
RENAMED = {"dataplacement", "log_alternate_epoch", "log_window_value", "plid_select", "plids", "randrepeat"}


@pytest.mark.fio
def test_the_tables_have_the_names_of_fio(tmp_path: Path) -> None:
    """The tables contain the option names of fio and of the engines that tkperf uses, with all aliases."""

    def ask(*words: str) -> str:
        done = subprocess.run(["fio", *words], check=True, capture_output=True, text=True, cwd=tmp_path)
        return done.stdout

    listed = ask("--cmdhelp=all") + ask("--enghelp=io_uring") + ask("--enghelp=libaio")
    known = set(re.findall(r"^ *([a-z][\w-]*) *: ", listed, re.MULTILINE))
    tables = CARRIED_OVER.keys() | WITHOUT_EFFECT | REFUSED.keys()
    version = tuple(map(int, re.findall(r"\d+", ask("--version"))[:2]))
    # fio has this option, but does not list it.
    assert tables - known <= {"bs_is_seq_rand"} | (NEWER if version < (3, 42) else set())
    aliases = {}
    for name in tables & known:
        for alias in re.findall(r"^ +alias: (\w+)$", ask(f"--cmdhelp={name}"), re.M):
            aliases[alias] = name
    assert aliases.items() <= ALIASES.items()
    assert {ALIASES[alias] for alias in ALIASES.keys() - aliases.keys()} <= (RENAMED if version < (3, 42) else set())


@pytest.mark.fio
@pytest.mark.parametrize(
    "line",
    [
        "bs=0",
        "bs=(2*2k)",
        "rw=rand",
        "rw=randreadx",
        "iodepth=0",
        "rwmixread=101",
        "random_distribution=zoned:50/5:40/95",
        "direct=2",
        "direct=yes",
        "direct",
        "stonewall=abc",
        "kb_base=1001",
        "runtime=",
        "rate_process=x",
        "buffer_compress_percentage=101",
    ],
)
def test_what_fio_refuses_is_refused(line: str, tmp_path: Path) -> None:
    """tkperf takes no file that fio would not take."""
    rw = "rw=randwrite\n"
    file = tmp_path / "a.fio"
    file.write_text(f"[a]\n{rw}size=1m\nfilename=x\n{line}\n")
    done = subprocess.run(["fio", "--parse-only", file], check=False, capture_output=True, cwd=tmp_path)
    assert done.returncode != 0
    assert any(f", {line}: " in refusal for refusal in refusals_of(f"[a]\n{TIMED}{rw}{line}\n"))
