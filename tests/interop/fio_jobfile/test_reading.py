"""fio's dialect of job files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.fio_jobfile.job_files import read_included
from tkperf.interop.fio_jobfile.reading import MOST_INCLUDES, read_jobs
from tkperf.model.errors import UsageError


def values(text: str, file: str = "a.fio") -> list[tuple[str, dict[str, str | None]]]:
    return [
        (job.name, {name: option.value for name, option in job.options.items()})
        for job in read_jobs(file, text, read_included)
    ]


def test_a_global_section_holds_for_the_jobs_below_it() -> None:
    """Several add up; what a job says itself comes last; any name that begins with global is one."""
    text = "[global]\nbs=4k\n[a]\nrw=read\n[global2]\nbs=8k\niodepth=2\n[b]\niodepth=4\n[b]\n"
    assert values(text) == [
        ("a", {"bs": "4k", "rw": "read"}),
        ("b", {"bs": "8k", "iodepth": "4"}),
        ("b", {"bs": "8k", "iodepth": "2"}),
    ]


def test_comments_indents_and_blanks() -> None:
    """; and # end a line anywhere; white space around names and values does not count."""
    text = "# x\n ; y\r\n[a]; z\n  bs = 4k # four\n\tdirect=1;on\n\nthread\n"
    assert values(text) == [("a", {"bs": "4k", "direct": "1", "thread": None})]


def test_aliases_are_one_option_and_the_last_counts() -> None:
    """Options have fio's own name."""
    assert values("[a]\nbs=4k\nblocksize=8k\nreadwrite=read\n") == [
        ("a", {"bs": "8k", "rw": "read"})
    ]


def test_included_files_are_read_where_they_stand(tmp_path: Path) -> None:
    """Within a section, in the order of the lines, also from one included file to the next."""
    (tmp_path / "one").write_text("bs=4k\ninclude two\niodepth=2\n")
    (tmp_path / "two").write_text("# nothing\nbs=8k\n")
    text = "[a]\nrw=read\ninclude one\niodepth=3\n"
    assert values(text, str(tmp_path / "a.fio")) == [
        ("a", {"rw": "read", "bs": "8k", "iodepth": "3"})
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a.fio: it has no job: a job is a section such as [randread]"),
        ("[global]\nbs=4k\n", "a.fio: it has no job: a job is a section such as [randread]"),
        (
            "bs=4k\n[a]\n",
            "a.fio, line 1: 'bs=4k' is above the first [section], which fio refuses; is it a "
            "job file?",
        ),
        ("[a\nbs=4k\n", "a.fio, line 1: '[a' is no section: it is [name]"),
        (
            "[a]\nHello, world!\n",
            "a.fio, line 2: 'Hello, world!' is neither an option nor a section; is it a job file?",
        ),
        (
            "[a]\nsize=${SIZE}\n",
            "a.fio, line 2: size: ${SIZE} is filled in by fio from the environment or the host, so that the "
            "load would not be known: write its value",
        ),
        (
            "[a]\nsize=8*$mb_memory\n",
            "a.fio, line 2: size: $mb_memory is filled in by fio from the environment or the host, so that "
            "the load would not be known: write its value",
        ),
        ("[a]\0", "a.fio: it is not a job file but holds binary data"),
        ("[a]\ninclude\n", "a.fio, line 2: 'include': write include FILE"),
        ("[a]\n" * 257, "a.fio: more than 256 jobs; no test is as long"),
    ],
)
def test_what_is_no_job_file_is_one_clear_line(text: str, reason: str) -> None:
    """With file and line, and what it should be."""
    with pytest.raises(UsageError) as raised:
        values(text)
    assert str(raised.value) == reason


def test_a_file_that_includes_itself_ends(tmp_path: Path) -> None:
    """By whatever way, and many inclusions of one file, too."""
    (tmp_path / "one").write_text("include two\n")
    (tmp_path / "two").write_text("include one\n")
    file = tmp_path / "a.fio"
    with pytest.raises(
        UsageError, match=r"line 1: more than .* included files; does one include its"
    ):
        values("[a]\ninclude one\n", str(file))
    (tmp_path / "empty").write_text("")
    with pytest.raises(UsageError, match=f"more than {MOST_INCLUDES} included files"):
        values("[a]\n" + "include empty\n" * (MOST_INCLUDES + 1), str(file))
    (tmp_path / "section").write_text("[b]\n")
    with pytest.raises(UsageError, match="a section in an included file, which fio refuses"):
        values("[a]\ninclude section\n", str(file))
