"""Build the pages of ``tkperf doctor`` and ``tkperf tune`` from the data that ``--json`` prints.

Each page consists of a verdict, followed by tables and lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tkperf.analysis.host_conditions import ADVICE, DISTURBS, UNKNOWN, HostCondition, host_findings
from tkperf.analysis.readiness import (
    SIMULATED_DRIVE,
    Data,
    DeviceCode,
    HostCode,
    TuneCode,
    find_changes,
    find_not_tuned,
    find_settings,
    is_changed,
    judge_device,
    judge_host,
    judge_restored,
    judge_tuning,
)
from tkperf.analysis.verdict import NamedReason
from tkperf.model.units import format_count
from tkperf.page.facts import NOT_KNOWN_TEXT, SLOW_LINK, list_device_facts, word
from tkperf.page.page import Block, Column, Note, NotesView, ReportView, TableView, build_table
from tkperf.page.verdict_texts import NoteLevel, Verdict, word_verdict

# The only kind of target whose missing facts are listed as unknown. For targets of other kinds, most of the facts do
# not exist.
_BLOCK = "block device"
# Facts that the page of a run shows among the facts about the platform, each with its label.
_NEAR = {"host_adapter": "Host adapter", "numa_node": "NUMA node", "rotation_rate_rpm": "Rotation rate (1/min)"}
_ORDER = (DISTURBS, ADVICE, "note", "ok", UNKNOWN)
_REMARKABLE = (DISTURBS, ADVICE)
_RESTORE = Note(text="", command="sudo tkperf tune --restore")


def build_device_page(found: Data) -> ReportView:
    """Build the page of a device. The page contains facts about the device, its purge methods, its telemetry, and the
    state of the host.
    """
    facts, objections = found["facts"], found["objections"]
    findings = host_findings({"audit": found["host"]})
    confirmed = not objections and facts["kind"] != SIMULATED_DRIVE
    against = [objection["text"] for objection in objections] if len(objections) > 1 else []
    consent = Note(text="", command=f"--yes-destroy {found['confirm_id']}")
    return _page(
        title=str(facts["path"]),
        verdict=_word_device(found),
        blocks=(
            _list("Objections", map(_item, against)),
            _list("To confirm its erasure", [consent] if confirmed else []),
            *_device_facts(facts),
            _purges(found),
            _list("Telemetry", map(_item, _describe_telemetry(found["telemetry"]))),
            *_host_lists(findings),
        ),
    )


def _device_facts(facts: Data) -> tuple[TableView, NotesView]:
    """Return the known facts with their sources, and the names of the unknown facts."""
    listed = [*list_device_facts(facts), *((_NEAR[key], key, word(facts.get(key))) for key in _NEAR)]
    rows = tuple(
        (label, f"{text} ({facts[key]:,} bytes)" if key == "capacity_bytes" else text, facts["sources"].get(key, ""))
        for label, key, text in listed
        if text is not None
    )
    unknown = [label for label, key, text in listed if text is None and key not in ("", "backing")]
    # The page lists unknown facts only for a block device, because most of the facts do not exist for other targets.
    named = [", ".join(unknown)] if unknown and facts["kind"] == _BLOCK else []
    return (
        TableView(title=str(facts["path"]), columns=("fact", "value", "source"), rows=rows),
        _list("Not known", map(_item, (*named, *facts["gaps"]))),
    )


def _purges(found: Data) -> TableView:
    methods = (
        (method["name"], method["title"] + " (only when asked for)" * (not method["automatic"]))
        for method in found["purge_methods"]
    )
    refusals = ((refusal["name"], f"not possible: {refusal['because']}") for refusal in found["purge_refusals"])
    return TableView(
        title="Purge methods, in order of preference",
        columns=("--purge" if found["facts"]["kind"] == _BLOCK else "method", "what it does"),
        rows=(*methods, *refusals),
    )


def build_host_page(found: Data) -> ReportView:
    """Build the page of the host. The page states whether the host can measure, and how tkperf was installed. The page
    also lists the programs that tkperf uses, and the conditions that would disturb a run.
    """
    findings = host_findings({"audit": found["audit"]})
    programs = found["programs"]
    install = f"sudo apt-get install {' '.join(found['packages'])}"
    return _page(
        title="This host",
        verdict=_word_host(found),
        blocks=(
            _list("To install what is missing", [Note(text="", command=install)] if found["packages"] else []),
            build_table(
                "Programs that tkperf uses",
                programs,
                [
                    Column("program", lambda program: program["name"]),
                    Column("for", lambda program: program["purpose"]),
                    Column("state", lambda program: program["state"] or "MISSING"),
                ],
            ),
            _describe_installation(found["installation"]),
            _list(f"What {found['fio']} cannot do", map(_item, found["fio_limits"])),
            *_host_lists(findings),
        ),
    )


def _describe_installation(installation: Data) -> NotesView:
    """Return a list that states how tkperf was installed and which features this kind of installation lacks."""
    where = f"installed as {installation['way']} in {installation['place']}"
    if installation["in_container"]:
        where += ", in a container"
    gaps = (Note(text=gap["text"], command=gap["command"] or "") for gap in installation["gaps"])
    return _list("This tkperf", [_item(where), *gaps])


def build_tune_page(found: Data, *, applied: bool, is_file: bool) -> ReportView:
    """Build the page of the host settings that a measurement of a device needs.

    Args:
        applied: whether tkperf changed the settings.
        is_file: whether the target is a file.
    """
    settings = find_settings(found)
    changes = found["changed"] if applied else find_changes(found)
    outcome = "changed and verified" if applied else "would be changed, nothing was set"
    what = f"{format_count(len(changes), 'setting')} {outcome}"
    judged = judge_tuning(found, applied=applied)
    texts = {reason.code: _word(reason) for reason in judged.reasons}
    queue = "the queue of the drive below a file is not changed: it has other users"
    return _page(
        title="Settings of this host",
        verdict=word_verdict(
            judged,
            texts.values(),
            title=what if changes else f"Nothing to {'change' if settings else 'set here'}",
            reasons=(text for code, text in texts.items() if code is not TuneCode.WOULD_CHANGE),
        ),
        blocks=(
            _list("Set", map(_item, found["changed"])),
            _list("To put it back", [_RESTORE] if found["changed"] else []),
            _list("Settings", () if applied else _setting_items(settings)),
            _list("Not set", [_item(queue)] if is_file else []),
            _list("For you to change", map(_finding_item, _by_gravity(find_not_tuned(found)))),
        ),
    )


def build_restored_page(found: Data) -> ReportView:
    """Build the page that shows the restored settings."""
    put_back, left, kept_for = found["put_back"], found["left"], found["kept_for"]
    title = f"{format_count(len(put_back), 'setting')} put back" if put_back else "Nothing put back"
    if found["rebooted"]:
        title = "Nothing to put back: this host was rebooted since"
    elif not (put_back or left or kept_for or found["failed"]):
        title = "Nothing to put back"
    judged = judge_restored(found)
    return _page(
        title="Settings of this host",
        verdict=word_verdict(judged, map(_word, judged.reasons), title=title, reasons=()),
        blocks=(
            _list("Put back", map(_item, put_back)),
            _list("Left unchanged", (Note(text=text, level=NoteLevel.CAUTION) for text in left)),
            _list("Kept for a run under way", map(_item, kept_for)),
        ),
    )


def _word_device(found: Data) -> Verdict:
    judged = judge_device(found)
    texts = [_word(reason) for reason in judged.reasons]
    if judged.simulated and not texts:
        path = found["facts"]["path"]
        reasons = [f"a model, no device; 'tkperf ssd NAME {path}' rehearses a run on it"]
    elif len(found["objections"]) > 1:
        reasons = [f"{len(texts)} objections"]
    else:
        reasons = texts or ["no disturbance was found"]
    return word_verdict(judged, texts, reasons=reasons)


def _word_host(found: Data) -> Verdict:
    judged = judge_host(found)
    texts = [_word(reason) for reason in judged.reasons]
    clean = "nothing is missing, and no disturbance was found"
    return word_verdict(judged, texts, reasons=texts or [clean])


def _word(reason: NamedReason) -> str:
    """Return a reason in words: ``2 things would disturb a run (CPU governor, link)``, ``fio is missing``."""
    names = ", ".join(reason.names)
    things = format_count(len(reason.names), "thing")
    match reason.code:
        case DeviceCode.HOLDS_DATA:
            return f"it holds {names}"
        case DeviceCode.SLOW_LINK:
            return SLOW_LINK
        case HostCode.NEEDED | HostCode.MISSING:
            return f"{names} {'is' if len(reason.names) == 1 else 'are'} missing"
        case DeviceCode.WOULD_DISTURB | HostCode.WOULD_DISTURB | TuneCode.WOULD_DISTURB:
            return f"{things} would disturb a run ({names})"
        case DeviceCode.MAY_DISTURB | HostCode.MAY_DISTURB | TuneCode.MAY_DISTURB:
            return f"{things} may disturb a run ({names})"
        case TuneCode.WOULD_CHANGE:
            return f"{format_count(len(reason.names), 'setting')} would be changed"
        case _:
            return names.rstrip(".")


def _host_lists(findings: Sequence[HostCondition]) -> tuple[NotesView, NotesView]:
    """Return two lists: the important findings with their remedies, and the other findings."""
    ordered = _by_gravity(findings)
    matters = [one for one in ordered if one.level in _REMARKABLE]
    others = [one for one in ordered if one.level not in _REMARKABLE]
    return (
        _list("The host for a run of a day", map(_finding_item, matters)),
        _list("Other findings on the host", map(_finding_item, others)),
    )


def _by_gravity(findings: Iterable[HostCondition]) -> list[HostCondition]:
    return sorted(findings, key=lambda one: _ORDER.index(one.level))


def _finding_item(finding: HostCondition) -> Note:
    # If a condition is not known, the text ``found`` already contains the word for this level.
    level = "" if finding.level == UNKNOWN else f"{finding.level}, "
    text = f"{finding.title}: {level}{finding.found}"
    if finding.level not in _REMARKABLE:
        return Note(text=text)
    remedy = finding.remedy or "no command changes it"
    return Note(
        text=text,
        level=NoteLevel.CAUTION if finding.level == DISTURBS else NoteLevel.INFORMATION,
        details=(f"why: {finding.why}", *(() if finding.is_command else (f"do:  {remedy}",))),
        command=remedy if finding.is_command else "",
    )


def _setting_items(settings: Iterable[Data]) -> Iterator[Note]:
    """Yield an item for each setting. If all CPUs have the same setting, they share one item."""
    alike: dict[tuple[object, ...], list[Data]] = {}
    for row in settings:
        key = tuple(row[name] for name in ("subject", "drive", "now", "wanted", "offered"))
        alike.setdefault(key, []).append(row)
    for rows in alike.values():
        first, more = rows[0], len(rows) - 1
        now = first["now"] or NOT_KNOWN_TEXT
        change = f"{now} -> {first['wanted']}" if is_changed(first) else f"{now}, stays"
        if first["offered"] is False:
            change = f"{now}, stays ({first['wanted']} is not offered)"
        yield Note(
            text=f"{first['subject']}: {change}",
            level=NoteLevel.CAUTION if is_changed(first) else NoteLevel.INFORMATION,
            details=(f"why: {first['why']}", f"{first['path']} and {more} more" if more else first["path"]),
        )


def _describe_telemetry(found: Data) -> Iterator[str]:
    """Yield the sources of telemetry that a run would read, and their present values."""
    facts, reading = found["facts"], found["reading"]
    if facts is None:
        return
    yield f"sources: {', '.join(facts['sources']) or 'none'}"
    yield from (f"not known: {gap}" for gap in facts["gaps"])
    yield from facts["contradictions"]
    values = {
        name.replace("_", " "): value
        for name, value in (reading or {}).items()
        if value is not None and name not in ("at_s", "drive", "source")
    }
    if values:
        words = (
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value:,}" for name, value in values.items()
        )
        yield f"readings now: {', '.join(words)}"


def _page(*, title: str, verdict: Verdict, blocks: Iterable[Block]) -> ReportView:
    """Return the page. Blocks without rows or remarks are omitted."""
    return ReportView(
        title=title,
        verdict=verdict,
        overview=tuple(block for block in blocks if (block.rows if isinstance(block, TableView) else block.notes)),
    )


def _item(text: str) -> Note:
    return Note(text=text)


def _list(title: str, notes: Iterable[Note]) -> NotesView:
    return NotesView(title=title, notes=tuple(notes))
