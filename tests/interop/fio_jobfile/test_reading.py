"""tkperf reads the format of fio's job files."""

from __future__ import annotations

import pytest

from tkperf.interop.fio_jobfile.job_sections import name_variables, read_jobs
from tkperf.model.errors import UsageError


def values(text: str) -> list[tuple[str, dict[str, str | None]]]:
    return [
        (job.name, {name: option.value for name, option in job.options.items()}) for job in read_jobs("a.fio", text)
    ]


def test_a_global_section_holds_for_the_jobs_below_it() -> None:
    """A global section applies to the jobs below it, and the options of several global sections accumulate. A job's own
    options override them. Every section whose name begins with "global" is a global section.
    """
    text = "[global]\nbs=4k\n[a]\nrw=read\n[global2]\nbs=8k\niodepth=2\n[b]\niodepth=4\n[b]\n"
    assert values(text) == [
        ("a", {"bs": "4k", "rw": "read"}),
        ("b", {"bs": "8k", "iodepth": "4"}),
        ("b", {"bs": "8k", "iodepth": "2"}),
    ]


def test_comments_indents_and_blanks() -> None:
    """A semicolon or # begins a comment anywhere in a line. White space around names and values is ignored."""
    text = "# x\n ; y\r\n[a]; z\n  bs = 4k # four\n\tdirect=1;on\n\nthread\n"
    assert values(text) == [("a", {"bs": "4k", "direct": "1", "thread": None})]


def test_aliases_are_one_option_and_the_last_counts() -> None:
    """An alias counts as the option with fio's own name. If an option occurs twice, the last value counts."""
    assert values("[a]\nbs=4k\nblocksize=8k\nreadwrite=read\n") == [("a", {"bs": "8k", "rw": "read"})]


def test_variables_are_filled_in_as_fio_does() -> None:
    """Variables are replaced as fio replaces them. A value may contain several variables with text around them.
    Variables in comments are ignored.
    """
    text = "[a]\nbssplit=${SMALL}k/${SHARE}:64k/ # ${NONE}\nrate=${RATE}m,\nbs=$x\n"
    (job,) = read_jobs("a.fio", text, {"SMALL": "4", "SHARE": "60", "RATE": "5", "MORE": "1"})
    values = {name: option.value for name, option in job.options.items()}
    assert values == {"bssplit": "4k/60:64k/", "rate": "5m,", "bs": "$x"}
    assert name_variables(text) == ("SMALL", "SHARE", "RATE")


def test_global_sections_alone_are_one_job() -> None:
    """If a file contains only global sections, they form one job. Test suites use such files, and add the sections with
    the devices when they run them.
    """
    assert values("[global]\nbs=4k\nrw=read\n") == [("a", {"bs": "4k", "rw": "read"})]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a.fio: the file contains no job. A job is a section such as [randread]"),
        ("[global]\n", "a.fio: the file contains no job. A job is a section such as [randread]"),
        ("bs=4k\n[a]\n", "a.fio, line 1: 'bs=4k' is above the first [section], which fio refuses; is it a job file?"),
        (
            "\ufeff[a]\nbs=4k\n",
            "a.fio, line 1: the file begins with a byte order mark, which fio refuses: save the file without it",
        ),
        ("[a\nbs=4k\n", "a.fio, line 1: '[a' is no section: it is [name]"),
        (
            "[a]\nHello, world!\n",
            "a.fio, line 2: 'Hello, world!' is neither an option nor a section; is it a job file?",
        ),
        (
            "[a]\nsize=${SIZE}\n[b]\nbs=${BS}\nsize=${SIZE}\n",
            "a.fio: this file refers to environment variables for 2 values. Add --set SIZE=.. --set BS=..",
        ),
        (
            "[a]\nsize=8*$mb_memory\n",
            "a.fio, line 2: size: fio fills in $mb_memory from the host, so that the load would not be known: write "
            "its value",
        ),
        ("[a]\0", "a.fio: the file contains binary data, so it is not a job file"),
        ("[a]\ninclude b.inc\n", "a.fio, line 2: 'include b.inc': tkperf reads one file: write its lines here instead"),
        (
            "[a]\n" * 257,
            "a.fio: the file contains more than 256 jobs, but a test can run at most that number. Divide the file "
            "into several files",
        ),
    ],
)
def test_what_is_no_job_file_is_one_clear_line(text: str, reason: str) -> None:
    """If a text is not a job file, the error is a single line. This line contains the name of the file, the line number
    and the expected form.
    """
    with pytest.raises(UsageError) as raised:
        values(text)
    assert str(raised.value) == reason
