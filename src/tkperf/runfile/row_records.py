"""The conversion between the rows of a run file's tables and records. The checks are strict, because a file may be
damaged or edited by hand.

This module refuses impossible values, both for the reader and, before writing, for the writer. Code that uses a record
therefore never receives such values. If the column allows NULL, an impossible value becomes "not known". Otherwise the
row is refused, or the fact is omitted. ``step_rows.py`` converts steps.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from operator import itemgetter
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import msgspec

from tkperf.model import decoding
from tkperf.model.figures import TestPlan
from tkperf.model.phases import SectionOutcome
from tkperf.model.record import PurgeRecord, Resumption, RunNote, RunStatus, VerdictRecord
from tkperf.model.run_info import RunInfo
from tkperf.model.steady_state import SteadyStateVerdict
from tkperf.model.strict import describe_mistake
from tkperf.model.telemetry.drive_reading import Reading

# The limit for nested facts. The most deeply nested fact is profile.own_workload.phases[0].tracked[0].at.io_depth.
_DEEPEST = 7
_TABLES = ("profile", "options", "device")

T = TypeVar("T")
Columns = dict[str, Any]
"""A row: the value of each column, keyed by the name of the column."""

# msgspec cannot express "finite", so the greatest finite number is used as the limit.
_MOST = sys.float_info.max
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
PositiveCount = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Flag = Annotated[int, msgspec.Meta(ge=0, le=1)]
# The names of a run's files contain the name of the run. The length of a file name in Linux is limited to 255 bytes.
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Finite = Annotated[float, msgspec.Meta(ge=-_MOST, le=_MOST)]
NonNegative = Annotated[float, msgspec.Meta(ge=0, le=_MOST)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=_MOST)]
_BOUNDED = {int: Count, float: Finite, bool: Flag}

# Exceptions that damaged bytes can cause before any check: wrong types, numbers, names, lengths or nesting.
BAD_ROW = (ValueError, LookupError, TypeError, ArithmeticError, MemoryError, RecursionError)


def convert(table: str, value: object, type_: type[T]) -> T:
    """Return a row, or the content of a row's JSON, as a record.

    Raises:
        ValueError: the value does not have the type ``type_``. The text names the table and the key.
    """
    try:
        return decoding.convert(value, type_)
    except msgspec.ValidationError as error:
        raise ValueError(f"table {table}{describe_mistake(error, type_, value)}") from error


class PlainFields:
    """Columns for the plain fields of a record: numbers, flags, texts and names.

    Unless narrower limits are given, integers must not be negative, real numbers must be finite, and flags are 0 or 1.
    """

    def __init__(self, table: str, record: type, *, but: Collection[str] = (), prefix: str = "", **types: Any) -> None:
        """Use the fields of ``record`` except the fields in ``but``. ``types`` contains narrower types for columns, and
        additional columns.
        """
        hints = get_type_hints(record)
        own = {name: _bound(hint) for name, hint in hints.items() if name not in but and not name.startswith("_")}
        types = own | types
        self._table = table
        self._row = msgspec.defstruct(table, list(types.items()))
        # The type of the same values in their order, as a tuple. A tuple can be converted in half the time that a dict
        # needs.
        self._values = msgspec.defstruct(table, list(types.items()), array_like=True)
        self._flags = [name for name in own if bool in (hints[name], *get_args(hints[name]))]
        self._columns = {name: prefix + name for name in types}
        self._take = itemgetter(*self._columns.values())
        self.types = {prefix + name: type_ for name, type_ in types.items()}

    def columns(self, record: object) -> Columns:
        """Return the values of a record's fields, keyed by the names of the columns. The value of an additional column
        is None.
        """
        return {column: getattr(record, name, None) for name, column in self._columns.items()}

    def parse(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a row, keyed by the names of the record's fields.

        Raises:
            ValueError: a column has an impossible value. The text names the table and the column.
        """
        try:
            row = decoding.convert(self._take(columns), self._values)
        except msgspec.ValidationError:
            # The tuple contains no names. If the conversion fails, a second conversion with the column names identifies
            # the wrong value.
            own = {name: columns[column] for name, column in self._columns.items()}
            row = convert(self._table, own, self._row)
        values = msgspec.structs.asdict(row)
        for name in self._flags:
            if values[name] is not None:
                values[name] = bool(values[name])
        return values


def _bound(hint: Any) -> Any:
    """Return the type of a field, limited to the usual range of values."""
    kinds = get_args(hint)
    if type(None) in kinds and len(kinds) == 2:
        return _BOUNDED.get(kinds[0], kinds[0]) | None
    return _BOUNDED.get(hint, hint)


_PURGE = PlainFields("purge", PurgeRecord, duration_s=NonNegative)
_READING = PlainFields("telemetry", Reading)
_VERDICT = PlainFields("verdict", VerdictRecord, verdict=str)
# The JSON in the column contains all fields except the section.
_OUTCOME = PlainFields("outcome", SectionOutcome, but=get_type_hints(SectionOutcome).keys() - {"section"}, outcome=str)


class TestRow(msgspec.Struct, frozen=True):
    """A row of table test. The plan of the test is stored as JSON."""

    __test__ = False

    name: str
    status: RunStatus
    started_s: Finite
    ended_s: Finite | None
    plan: str | None


# Values that replace unreadable values in a row of table test.
_TEST_STAND_INS = {"status": RunStatus.INTERRUPTED, "started_s": 0.0, "ended_s": None, "plan": None}
_TEST_TYPES = {
    name: type_ for name, type_ in get_type_hints(TestRow, include_extras=True).items() if name in _TEST_STAND_INS
}


def stand_in_test(test_id: int, name: str) -> Columns:
    """Return a row for a test of which only the name is known."""
    return {"id": test_id, "name": name, **_TEST_STAND_INS}


def mend(columns: Columns, types: Mapping[str, Any], stand_ins: Mapping[str, object]) -> tuple[Columns, dict[str, str]]:
    """Return the row with replacements for impossible values in the columns of ``types``, and the reason for each
    replacement. If ``stand_ins`` contains no replacement, the value becomes None.
    """
    mended, unread = dict(columns), dict[str, str]()
    for name, type_ in types.items():
        try:
            decoding.convert(mended[name], type_)
        except msgspec.ValidationError as error:
            mended[name] = stand_ins.get(name)
            unread[name] = describe_mistake(error, type_, columns[name])
    return mended, unread


def parse_test(columns: Columns) -> tuple[TestRow, dict[str, str]]:
    """Return a test with all readable values, and the reason for each unreadable value."""
    mended, reasons = mend(columns, _TEST_TYPES, _TEST_STAND_INS)
    unread = {name: f"table test, key {name}{reason}" for name, reason in reasons.items()}
    test = convert("test", mended, TestRow)
    if test.ended_s is not None and test.ended_s < test.started_s:
        unread["ended_s"] = f"test {test.name} ends before it starts"
        test = msgspec.structs.replace(test, ended_s=None)
    return test, unread


def parse_json(text: str) -> Any:
    """Return the value of a JSON text. Half of a surrogate pair, which cannot be encoded in UTF-8, becomes ``?``."""
    value = json.loads(text)
    if r"\ud" in text.lower():
        return json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    return value


def parse_plan(text: str) -> TestPlan:
    plan = convert("test", parse_json(text), TestPlan)
    figures = [*plan.figures, *(figure for section in plan.sections for figure in section.figures)]
    for quantities in [each.quantities for each in plan.sections] + [each.quantities for each in figures]:
        if len(set(quantities)) < len(quantities):
            raise ValueError("table test, key plan: a section or figure contains a quantity twice")
    return plan


def purge_columns(purge: PurgeRecord) -> Columns:
    return _PURGE.columns(purge)


def parse_purge(columns: Columns) -> PurgeRecord:
    return PurgeRecord(**_PURGE.parse(columns))


def parse_outcome(columns: Columns) -> SectionOutcome:
    row = _OUTCOME.parse(columns)
    data = parse_json(row["outcome"])
    for verdict in (data["verdict"], *data.get("verdicts", ())):
        if verdict is not None:
            _with_nan(verdict)
    outcome = convert("outcome", data, SectionOutcome)
    if outcome.section != row["section"]:
        raise ValueError(f"table outcome: the outcome belongs to another section, {outcome.section}")
    if any(after <= before for before, after in pairwise(outcome.window)):
        raise ValueError("table outcome: the rounds of the window are not in ascending order")
    return outcome


def parse_verdict(columns: Columns) -> VerdictRecord:
    row = _VERDICT.parse(columns)
    row["verdict"] = convert("verdict", _with_nan(parse_json(row["verdict"])), SteadyStateVerdict)
    return VerdictRecord(**row)


def _with_nan(verdict: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict with NaN in place of each null in JSON where the verdict requires a number."""
    numbers = ("average", "data_excursion", "allowed_data_excursion", "allowed_slope_excursion")
    for holder, keys in ((verdict, numbers), (verdict["fit"] or {}, ("slope", "intercept"))):
        for key in keys:
            if key in holder and holder[key] is None:
                holder[key] = math.nan
    verdict["values"] = [math.nan if value is None else value for value in verdict["values"]]
    return verdict


def resumption_columns(resumption: Resumption) -> Columns:
    """Return a resumption as a row. Lists are converted to JSON."""
    row: Columns = msgspec.to_builtins(resumption)
    return row | {key: json.dumps(value) for key, value in row.items() if isinstance(value, tuple)}


def parse_resumption(columns: Columns) -> Resumption:
    lists = ("repeated", "repeated_ids", "added", "changes", "command_line")
    read = {key: parse_json(columns[key]) for key in lists}
    resumption = convert("resumption", {**columns, **read}, Resumption)
    for name in ("stopped_s", "resumed_s"):
        if not math.isfinite(getattr(resumption, name)):
            raise ValueError(f"table resumption, {name}: the value is not a time")
    return resumption


def parse_warning(columns: Columns) -> RunNote:
    return convert("warning", columns, RunNote)


def parse_note(columns: Columns) -> RunNote:
    return convert("note", columns, RunNote)


def parse_reading(columns: Columns) -> Reading:
    return Reading(**_READING.parse(columns))


def _nested(levels: int) -> Any:
    """Return the type of plain data that contains up to ``levels`` nested lists or tables."""
    scalar: Any = str | bool | int | float | None
    if not levels:
        return scalar
    inner: Any = _nested(levels - 1)
    return scalar | list.__class_getitem__(inner) | dict.__class_getitem__((str, inner))


_Fact = _nested(_DEEPEST)


class _Drive(msgspec.Struct):
    """The identity and the capacity of a drive. The identity is used to compare and combine runs."""

    kind: str | None = None
    model: str | None = None
    serial: str | None = None
    firmware: str | None = None
    capacity_bytes: Count | None = None


class _Device(_Drive):
    members: tuple[_Drive, ...] | None = None


class _Facts(msgspec.Struct):
    """Facts that computations use, and the name of the run, which the tables of a comparison contain."""

    name: Name
    device: _Device
    active_range_offset_bytes: Count | None
    active_range_length_bytes: PositiveCount | None
    seed: Count | None


class RunEnd(msgspec.Struct, frozen=True):
    """The end of the run. The run file stores these values among the facts of the run."""

    status: RunStatus
    ended_utc: str | None
    ended_because: str | None


_FACTS = get_type_hints(RunInfo)


_FACT_CHECKS = {
    key: [
        msgspec.defstruct(key, [(key, check)])
        for check in (_Fact, type_, get_type_hints(_Facts, include_extras=True).get(key))
        if check is not None
    ]
    for key, type_ in _FACTS.items()
}


# Values for missing facts. If the facts do not contain a device, the run may be an imported run.
_NOT_KNOWN: dict[str, Any] = {
    "suite": "not known",
    "tkperf_version": "not known",
    "fio_version": None,
    "ioengine": "not known",
    "command_line": (),
    "started_utc": None,
    "profile_name": "not known",
    "profile": {},
    "options": {},
    "device": {},
    "hosts": (),
    "active_range_offset_bytes": None,
    "active_range_length_bytes": None,
}


def parse_run_facts(facts: Mapping[str, Any], *, name: str) -> tuple[RunInfo, dict[str, str]]:
    """Return the readable facts of a run, and the reason for each unreadable fact.

    Args:
        name: the name to use if the facts contain no name of the run.
    """
    readable: dict[str, Any] = dict(_NOT_KNOWN, name=name)
    unread: dict[str, str] = {}
    for key, type_ in _FACTS.items():
        if key not in facts:
            if key in readable:
                unread[key] = "it is missing"
            continue
        value, reasons = mend_fact(key, facts[key])
        unread.update(reasons)
        if key in reasons:
            continue
        readable[key] = decoding.convert(value, type_)
    # A name with a line break could imitate another line of the output, such as the result of another run.
    readable["name"] = readable["name"].replace("\n", " ")
    for key in ("notices", "choices", "alterations"):
        if key in readable:
            readable[key] = tuple(text.replace("\n", " ") for text in readable[key])
    return RunInfo(**readable), unread


def mend_fact(key: str, value: object) -> tuple[Any, dict[str, str]]:
    """Return a fact of RunInfo without its impossible parts, and the reason for each removed part."""
    reasons: dict[str, str] = {}
    # If one entry of a device, host or profile is impossible, the other entries are kept.
    if isinstance(value, dict) and key in _TABLES:
        return _mend_table(key, value, lambda entry: _why_not(key, entry))
    if key == "hosts" and isinstance(value, list) and all(isinstance(one, dict) for one in value):
        mended = [
            _mend_table(f"{key}[{index}]", one, lambda entry: _why_not(key, [entry])) for index, one in enumerate(value)
        ]
        for _, why in mended:
            reasons.update(why)
        value = [one for one, _ in mended]
    elif reason := _why_not(key, value):
        reasons[key] = reason
    return value, reasons


def _mend_table(
    name: str, table: dict[str, Any], why_not: Callable[[dict[str, Any]], str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a table without its impossible entries, and the reason for each removed entry."""
    if not why_not(table):  # nearly every table has no impossible entry
        return table, {}
    reasons = {key: why_not({key: value}) for key, value in table.items()}
    return (
        {key: value for key, value in table.items() if not reasons[key]},
        {f"{name}.{key}": reason for key, reason in reasons.items() if reason},
    )


def _why_not(key: str, value: object) -> str:
    for type_ in _FACT_CHECKS[key]:
        try:
            convert("run", {key: value}, type_)
        except (ValueError, RecursionError) as error:
            return str(error)
    return ""
