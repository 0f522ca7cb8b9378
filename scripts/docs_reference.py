"""Generate pages of the reference from the code: commands, tests, keys and numbers, charts, and simulated drives.

    python scripts/docs_reference.py [FOLDER]

The script writes the pages into docs/reference, or into FOLDER. The repository contains the generated pages, because
readers on a code host need them as well.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
from man_pages import parts_of_help
from refusal_messages import build_page

from tkperf.cli.calling import options_by_heading
from tkperf.cli.main import cli
from tkperf.engine.simulation.models import PRESET_MODELS, DiskModel, FlashModel, Misbehaviour
from tkperf.interop.fio_jobfile.job_options import CARRIED_OVER, HARMLESS, LEFT_OUT, REFUSED, WITHOUT_EFFECT
from tkperf.interop.fio_jobfile.job_sections import ALIASES
from tkperf.model.choices import built_in_profiles
from tkperf.model.figures import TABLE_KINDS, Figure
from tkperf.model.units import GIB
from tkperf.page.naming import list_words
from tkperf.procedures import SUITES, TESTS, Circumstances, Profile, Test, load_profile
from tkperf.procedures.forecast import section_names
from tkperf.procedures.own_workloads.workload_file import TABLES_BY_PLACE
from tkperf.procedures.profiles import explain_keys, show_value
from tkperf.procedures.profiles.profile_tables import SHARED_TABLES


def commands() -> Iterator[str]:
    """Yield every command with the text of its help."""
    yield "# Commands\n"
    context = click.Context(cli, info_name="tkperf", **cli.context_settings)
    yield from _commands_of(cli, context, "##")


def _commands_of(group: click.Group, context: click.Context, level: str) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        own = click.Context(command, info_name=name, parent=context)
        yield from _command(command, own, level)


def _command(command: click.Command, context: click.Context, level: str) -> Iterator[str]:
    prose, examples, _ = parts_of_help(command)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"{level} {context.command_path}\n"
    yield f"    {context.command_path} {usage}\n"
    for text in prose:
        kept = text.startswith("\b")
        yield (re.sub(r"^", "    ", text[1:], flags=re.MULTILINE) if kept else _plain(text)) + "\n"
    if examples:
        yield "```sh\n" + "\n".join(examples) + "\n```\n"
    for heading, records in options_by_heading(command, context).items():
        rows = [f"| `{_cell(flags)}` | {_cell(_plain(what))} |" for flags, what in records]
        yield "\n".join([f"| {heading} | Meaning |", "|---|---|", *rows]) + "\n"
    if isinstance(command, click.Group):
        yield from _commands_of(command, context, level + "#")


def tests() -> Iterator[str]:
    """Yield every test, with the procedure that each profile defines for it."""
    profiles = [load_profile(name) for name in built_in_profiles()]
    yield "# Tests\n"
    yield (
        "This page describes what each test does in each profile. Results contain the same descriptions. `tkperf "
        "profiles show NAME` lists the numbers of a profile and their sources.\n"
    )
    for test in TESTS:
        yield from _test(test, [profile for profile in profiles if test.is_in(profile)])


def _test(test: Test, profiles: list[Profile]) -> Iterator[str]:
    commands_of_it = [f"`tkperf {suite}`" for suite, known in SUITES.items() if test in known.values()]
    when = "by default" if test.by_default else f"with `--test {test.name}`"
    yield (f"## {_plain(test.title)}: `{test.name}`" + (" (hdd)" if "hdd" in test.suites else "") + "\n")
    runs = "run" if len(commands_of_it) > 1 else "runs"
    yield f"{list_words(commands_of_it)} {runs} this test {when}. The source of the test is {_plain(test.source)}.\n"
    for profile in profiles:
        course = "\n".join(test.describe(profile, Circumstances()))
        yield f"**{profile.name}**, {_plain(profile.title)}\n\n```text\n{course}\n```\n"


def _plain(text: str) -> str:
    """Escape the characters of a text that Markdown would interpret."""
    return re.sub(r"([\\*_<>\[\]`|])", r"\\\1", text)


def _prose(docstring: str) -> str:
    """Return a docstring as Markdown. Literals are enclosed in single backticks, and all other text is escaped."""
    parts = docstring.split("``")
    return "".join(f"`{part}`" if number % 2 else _plain(part) for number, part in enumerate(parts))


def _cell(text: str) -> str:
    return " ".join(text.replace("|", r"\|").split())


def profiles() -> Iterator[str]:
    """Yield every table of a profile with its keys, and with the values of each key in the built-in profiles."""
    yield "# Keys and numbers of profiles\n"
    yield (
        "[Profiles](profiles.md) describes how to choose or write a profile, and "
        "[Method](../explanation/method.md#sources) lists the sources of the numbers. A key is optional if its "
        "meaning names a default. Every table also contains the key `source`, a text that names the source of the "
        "numbers. The text below a heading names the profiles that contain the table. All other profiles contain "
        "neither the table nor the test that uses the table. In the column *set to*, a value without a name "
        "applies to all other profiles that contain the table. A dash means that the profile does not set the "
        "key.\n"
    )
    before: list[tuple[str, str, str, str]] = []
    data: dict[str, dict[str, Any]] = {name: load_profile(name).as_plain_data() for name in built_in_profiles()}
    for table in dict.fromkeys((*SHARED_TABLES, *(each for test in TESTS for each in test.tables))):
        users = [f"`tkperf {test.suites[0]} --test {test.name}`" for test in TESTS if table in test.tables]
        having = {name: tables[table.key] for name, tables in data.items() if table.key in tables}
        of = "All profiles" if len(having) == len(data) else list_words([f"`{name}`" for name in having])
        yield f"## {_plain(f'[{table.key}]')}\n"
        yield (
            f"{' and '.join(users) or 'All tests'} {'uses' if len(users) == 1 else 'use'} this table. "
            f"{of} {'contains' if len(having) == 1 else 'contain'} the table.\n"
        )
        rows = [
            (f"`{key.name}`", _plain(key.values), _plain(key.meaning), _set_to(key.name, having))
            for key in explain_keys(table)
            if key.name != "source"
        ]
        same = [row[0] for row in rows if row in before]
        before = rows
        if len(same) > len(rows) / 2:
            yield f"The following keys are the same as in the preceding table: {', '.join(same)}.\n"
            rows = [row for row in rows if row[0] not in same]
        yield from _table(("key", "values", "meaning", "set to"), rows)


def _set_to(key: str, having: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a text with the value that most profiles use for a key. Each other value follows, with the names of the
    profiles that use this value.
    """
    profiles: dict[str, list[str]] = {}
    for name, numbers in having.items():
        value = f"`{show_value(numbers[key])}`" if key in numbers else "-"
        profiles.setdefault(value, []).append(f"`{name}`")
    usual = max(profiles, key=lambda value: len(profiles[value]))
    others = [f"{', '.join(of)}: {value}" for value, of in profiles.items() if value != usual]
    return "<br>".join((usual, *others))


def workloads() -> Iterator[str]:
    """Yield every key of a workload file."""
    yield "# Keys of workload files\n"
    yield (
        "`tkperf workload keys` prints the same keys. [Own workloads](own-workloads.md) contains a complete example. A "
        "key whose meaning names a default is optional.\n"
    )
    for heading, table in TABLES_BY_PLACE.items():
        yield f"## {_plain(heading)}\n"
        first_paragraph = " ".join((table.__doc__ or "").split("\n\n")[0].split())
        yield f"{_prose(first_paragraph)}\n"
        keys = explain_keys(table)
        if not keys:
            yield "A phase of this kind has no other key.\n"
            continue
        yield from _table(
            ("key", "values", "meaning"), ((f"`{key.name}`", _plain(key.values), _plain(key.meaning)) for key in keys)
        )


def charts() -> Iterator[str]:
    """Yield every chart of every test, with its question, its views and its sections."""
    yield "# Charts of each test\n"
    yield (
        "A PDF contains the views in bold. *All* means that a chart shows the whole test and not only one section.\n"
    )
    places: dict[tuple[str, str], dict[str, list[str]]] = {}
    for test in TESTS:
        courses = (load_profile(name) for name in ("quick", "pts-2.0"))
        names = [
            name
            for profile in courses
            if test.is_in(profile)
            for name in section_names(test.procedure(profile, GIB), active_range_bytes=GIB)
        ]
        plan = test.plan(dict.fromkeys(names))
        sections: dict[tuple[Figure, ...], list[str]] = {}
        for section in plan.sections:
            sections.setdefault(section.figures, []).append(section.name)
        for figures, of in (*sections.items(), (plan.figures, ["all"])):
            place = of[0] if len(of) == 1 else f"{of[0]} ... {of[-1]}"
            questions: dict[str, list[Figure]] = {}
            for figure in figures:
                if figure.kind not in TABLE_KINDS:
                    questions.setdefault(figure.question, []).append(figure)
            for question, views in questions.items():
                of_chart = places.setdefault((question, _views(views)), {})
                of_chart.setdefault(place, []).append(f"`{test.suites[0]}-{test.name}`")
    yield from _table(
        ("question", "views", "tests: section"),
        (
            (*chart, "<br>".join(f"{', '.join(of)}: {place}" for place, of in at.items()))
            for chart, at in sorted(places.items())
        ),
    )


def _views(views: list[Figure]) -> str:
    """Return the names of the views of a chart. The names of printed views are bold. If no view is printed, the first
    name is bold.
    """
    none_printed = not any(view.printed for view in views)
    texts = [", ".join(each.view) or each.kind.value for each in views]
    return "; ".join(
        f"**{text}**" if each.printed or (none_printed and number == 0) else text
        for number, (each, text) in enumerate(zip(views, texts, strict=True))
    )


def fio_options() -> Iterator[str]:
    """Yield the effect of every option of a fio job file on the converted workload file."""
    yield "# Options of fio job files\n"
    yield (
        "This page lists what `tkperf workload from-fio` does with each option of a job file. [Own "
        "workloads](own-workloads.md#converting-a-fio-job-file) describes the conversion. Options have the meaning of "
        "fio 3.33 or, if they are newer, of fio 3.42. tkperf refuses every option that is not on this page. The "
        "output of the command states what tkperf did with each option in the job file. This outcome can differ from "
        "the outcome on this page. tkperf does not carry over an option that the job does not use, and refuses a value "
        "that tkperf does not support.\n"
    )
    aliases: dict[str, list[str]] = {}
    for alias, name in ALIASES.items():
        aliases.setdefault(name, []).append(alias)

    def spelled(name: str) -> str:
        return ", ".join(f"`{each}`" for each in (name, *aliases.get(name, ())))

    yield "## Kept\n"
    yield from _table(
        ("option", "key of the workload file"), ((spelled(n), _plain(k)) for n, k in CARRIED_OVER.items())
    )
    yield "## Left out\n"
    yield from _table(("option", "reason"), ((spelled(name), _plain(why)) for name, why in LEFT_OUT.items()))
    yield "## Without effect\n"
    yield (
        "For buffered I/O (`direct=0`, `buffered=1`, or neither of the two options), the command needs the option "
        "`--direct`. Without `--direct`, tkperf refuses the job.\n"
    )
    yield from _table(("option", "reason"), ((spelled(name), _plain(why)) for name, why in WITHOUT_EFFECT.items()))
    yield "## Refused\n"
    yield "The value in the second column has no effect on the I/O. tkperf refuses every other value.\n"
    harmless: dict[str, list[str]] = {}
    for word in sorted(HARMLESS):
        name, _, value = word.partition("=")
        harmless.setdefault(name, []).append(f"`{value}`")
    rows = ((spelled(name), ", ".join(harmless.get(name, ["none"])), _plain(why)) for name, why in REFUSED.items())
    yield from _table(("option", "accepted", "reason"), rows)


def simulated_drives() -> Iterator[str]:
    """Yield every parameter of every preset of a simulated drive."""
    yield "# Parameters of simulated drives\n"
    yield (
        "[Simulated drives](../explanation/simulated-drive.md) describes the model. The file "
        "`src/tkperf/engine/simulation/models.py` explains each parameter.\n"
    )
    usual = {n: m for n, m in PRESET_MODELS.items() if m.misbehaviour == Misbehaviour()}
    odd = {n: m.misbehaviour for n, m in PRESET_MODELS.items() if n not in usual}
    for kind, heading in ((FlashModel, "Solid state drives"), (DiskModel, "Hard disks")):
        yield f"## {heading}\n"
        yield from _parameters({n: m for n, m in usual.items() if isinstance(m, kind)})
    yield "## Misbehaving drives\n"
    yield (
        "All other parameters have the values of `sata-ssd`, except that the capacity of `unsteady` is half the "
        "capacity of `sata-ssd`.\n"
    )
    yield from _parameters(odd)


def _parameters(records: Mapping[str, object]) -> Iterator[str]:
    names = [
        each.name
        for each in fields(next(iter(records.values())))  # type: ignore[arg-type]
        if each.name != "misbehaviour"
    ]
    yield from _table(
        ("parameter", *(f"`{name}`" for name in records)),
        ((f"`{name}`", *(_number(getattr(record, name)) for record in records.values())) for name in names),
    )


def _number(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return show_value(value) if value is not None else "none"
    return f"{value:,.15g}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


REFERENCE: dict[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "tests": tests,
    "profile-keys": profiles,
    "workload-keys": workloads,
    "fio-options": fio_options,
    "charts": charts,
    "simulated-drive-parameters": simulated_drives,
    "refusals": build_page,
}


def _wrap_prose(text: str) -> str:
    """Break long lines at the width of all other pages. Rows of tables, headings and code are not changed."""
    lines: list[str] = []
    is_code = False
    for line in text.splitlines():
        if line.startswith("```"):
            is_code = not is_code
        if is_code or line.startswith(("|", "#", " ", "```")):
            lines.append(line)
            continue
        # A piece of code within a sentence must not be wrapped.
        kept = re.sub(r"`[^`]+`", lambda code: code[0].replace(" ", "\0"), line)
        lines.append(textwrap.fill(kept, 100, break_on_hyphens=False, break_long_words=False).replace("\0", " "))
    return "\n".join(lines)


def main() -> None:
    """Write every page."""
    here = Path(__file__).parents[1] / "docs/reference"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else here
    for name, build_lines in REFERENCE.items():
        text = _wrap_prose("\n".join(build_lines()).rstrip()) + "\n"
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
