"""Build the views of the margins of claims: a matrix of drives and claims with a colour for each margin, and a tile for
each claim with a dot for each drive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from tkperf.analysis.claim_results import Checked, CheckedFile, ClaimKind, ClaimResult, ClaimState, limit_of
from tkperf.analysis.comparing.arrangements import describe_distribution
from tkperf.model.units import NOT_MEASURED, format_count, format_number
from tkperf.page.claim_texts import (
    WITHIN_UNCERTAINTY,
    describe_limit,
    describe_margin,
    describe_measured,
    format_measured,
    list_doubts,
    measure_of,
    name_claims,
    name_columns,
)
from tkperf.page.matrix import SIGN_WORDS, DecisionView, MatrixCell, MatrixColumn, MatrixRow, Sign
from tkperf.page.naming import list_words
from tkperf.page.page import HeadlineView
from tkperf.page.strip import Dot, Limit, Strip, build_bar_strip, build_dot_strip
from tkperf.page.verdict_texts import CLAIM_LEVELS, NoteLevel

MOST_CLAIM_COLUMNS = 8
"""The greatest number of columns with claims that fit on a screen with a width of 1,440 pixels."""
TILES_IN_ROW = 4
"""The number of tiles that fit side by side on a screen with a width of 1,440 pixels."""
CLOSE_PERCENT = 2.0
"""If the margin of a met claim is smaller than this percentage, the claim is shown with a sign. The percentage is a
convention (ADR 62) and does not change any verdict.
"""
# From this margin on, the colour of a cell has its full strength.
_STRONGEST_PERCENT = 25.0
_WEAKEST = 0.15
_FEWEST_IN_STRIP, _FEWEST_IN_COHORT = 2, 3
_SIGNS_OF_RESULTS = {NoteLevel.FAILURE: Sign.MISSED, NoteLevel.CAUTION: Sign.NOT_JUDGED}
# The greatest number of matrix rows for which two rows of tiles fit on the screen.
_MOST_FOR_TWO_ROWS = 14


def build_margins(
    heads: Sequence[MatrixRow],
    files: Sequence[CheckedFile],
    lines: Sequence[tuple[str, str]] = (),
    links: Sequence[Mapping[str, str]] = (),
) -> DecisionView:
    """Return the matrix of drives and claims.

    Args:
        heads: the rows. Each row contains only its first cell, which shows the result.
        files: the checked file of each row.
        links: for each row, the links to the one-second samples of the values. The titles of the claims are the keys.
    """
    titles = _choose_claims(files)
    all_titles = _list_titles(files)
    findings = {one.title: one for file in files if file.checked is not None for one in file.checked.claim_results}
    names = name_claims(findings.values())
    rows = []
    for number, (head, file) in enumerate(zip(heads, files, strict=True)):
        addresses = links[number] if links else {}
        cells = _build_cells(file, titles, addresses)
        rows.append(replace(head, cells=(*head.cells, *cells)))
    shown = list(lines)
    if left := len(all_titles) - len(titles):
        shown.append(("Not in the matrix", f"{format_count(left, 'claim')} with more to spare; the table has all"))
    return DecisionView(
        lines=tuple(shown),
        columns=(
            MatrixColumn(title="Result", detail="worst first"),
            *(
                MatrixColumn(
                    title=names[findings[title].claim],
                    detail=describe_limit(findings[title], names[findings[title].claim]),
                )
                for title in titles
            ),
        ),
        rows=tuple(rows),
        legend=build_heat_legend("margin to the claim on its good side, then the value", rows),
        is_heat_map=True,
        title="Drives and claims",
    )


def build_head(
    name: str, result: tuple[str, NoteLevel | None], *, detail: str = "", page: str = "", sign: Sign | None = None
) -> MatrixRow:
    """Return a row that contains only its first cell, which shows the result.

    Args:
        result: the result in words, with its severity.
        detail: further facts that distinguish the drive from all other drives.
        page: the file to which the name of the drive links, or "".
        sign: the sign; None for the sign that belongs to the severity.
    """
    text, level = result
    if sign is None:
        sign = Sign.NONE if level is None else _SIGNS_OF_RESULTS.get(level, Sign.NONE)
    cell = MatrixCell(text=text, sign=sign, words="", level=level)
    return MatrixRow(
        name=name, colour="", whole_name=" ".join(filter(None, (name, detail))), detail=detail, cells=(cell,), page=page
    )


def build_heat_legend(meaning: str, rows: Sequence[MatrixRow]) -> tuple[tuple[str, str], ...]:
    """Return the meaning of the percentages in the cells of a heat map, and of the signs that occur."""
    signs = {cell.sign for row in rows for cell in row.cells}
    return ("+5.0 %", meaning), *((str(sign), words) for sign, words in SIGN_WORDS.items() if sign in signs)


def _list_titles(files: Sequence[CheckedFile]) -> list[str]:
    return list(dict.fromkeys(one.title for file in files if file.checked for one in file.checked.claim_results))


def _choose_claims(files: Sequence[CheckedFile]) -> list[str]:
    """Return the claims that have a column, in their original order. If there are too many claims, return the claims
    with the smallest margins.
    """
    titles = _list_titles(files)
    if len(titles) <= MOST_CLAIM_COLUMNS:
        return titles
    ranks: dict[str, tuple[int, float]] = {}
    for file in files:
        if (checked := file.checked) is None:
            continue
        for one in checked.claim_results:
            rank = checked.rank(one)
            ranks[one.title] = min(rank, ranks.get(one.title, rank))
    return sorted(titles, key=lambda title: ranks[title])[:MOST_CLAIM_COLUMNS]


def _build_cells(file: CheckedFile, titles: Sequence[str], addresses: Mapping[str, str]) -> Iterator[MatrixCell]:
    findings = {} if file.checked is None else file.checked.by_title
    for title in titles:
        finding = findings.get(title)
        if finding is None or file.checked is None:
            yield MatrixCell(text=NOT_MEASURED, sign=Sign.NONE, words="")
        else:
            yield _build_cell(file.checked, finding, addresses.get(title, ""))


def _build_cell(checked: Checked, finding: ClaimResult, target: str) -> MatrixCell:
    kind, margin = checked.judge(finding), finding.margin_percent
    text = describe_margin(margin)
    if margin is None:
        text = finding.state.value if finding.value is not None else ""
    words = format_measured(finding) if finding.value is not None else ""
    sign, heat = Sign.NONE, None
    match kind:
        case ClaimKind.FAILED:
            sign = Sign.MISSED_UNSURE if finding.certain is False else Sign.MISSED
        case ClaimKind.NOT_JUDGED:
            sign = Sign.NOT_JUDGED
            words = ", ".join(
                (*list_doubts(checked, finding), *([] if finding.value is not None else ["not measured"]))
            )
            words = words or finding.state.value
        case ClaimKind.MET:
            is_close = margin is not None and margin < CLOSE_PERCENT
            if finding.certain is False:
                sign = Sign.MET_UNSURE
            elif is_close:
                sign = Sign.CLOSE
            share = 1.0 if margin is None else min(1.0, margin / _STRONGEST_PERCENT)
            heat = None if is_close else _WEAKEST + (1 - _WEAKEST) * share
    measured = f"{describe_measured(finding)}, claimed {finding.limit}"
    hint = "; ".join(filter(None, (f"{finding.state.value}: {measured}", finding.note)))
    return MatrixCell(
        text=text, sign=sign, words=words, hint=hint, target=target, heat=heat, level=CLAIM_LEVELS.get(kind)
    )


# Section: words.


def describe_margins_title(files: Sequence[CheckedFile], what: str, of: int | None = None) -> str:
    """Return a summary of the drives: ``1 of 24 drives misses 3 claims, 21 pass; 2 claims of 2 drives were not
    measured``.

    Args:
        what: the word "drive" or "run".
        of: the number of all drives, including drives without a file. None means that the number of files is used.
    """
    count, known = len(files) if of is None else of, [one.checked for one in files if one.checked is not None]
    missed = [number for checked in known if (number := checked.count(ClaimKind.FAILED))]
    claims = max((len(checked.by_title) for checked in known), default=0)
    parts = []
    passing = sum(one.passes for one in files)
    if missed:
        verb = "misses" if len(missed) == 1 else "miss"
        passed = f", {passing} {'passes' if passing == 1 else 'pass'}" if passing else ""
        parts.append(f"{len(missed)} of {format_count(count, what)} {verb} {_count_missed(missed)}{passed}")
    else:
        all_claims = {1: "the claim", 2: "both claims"}.get(claims, f"all {claims} claims")
        verb = "passes" if passing == 1 else "pass"
        if not passing:
            parts.append(f"No {what} of {count} passes {all_claims if claims else 'its claims'}")
        elif passing == count > 1:
            parts.append(f"All {count} {what}s {verb} {all_claims}")
        else:
            parts.append(f"{passing} of {format_count(count, what)} {verb} {all_claims}")
    parts += _count_open(known, what)
    if left := len(files) - len(known):
        parts.append(f"{format_count(left, what)} could not be checked")
    return "; ".join(parts)


def _count_missed(missed: Sequence[int]) -> str:
    if len(set(missed)) > 1:
        return f"{sum(missed)} claims in all"
    return f"{format_count(missed[0], 'claim')}{' each' if len(missed) > 1 else ''}"


def _count_open(known: Sequence[Checked], what: str) -> Iterator[str]:
    """Yield texts about claims without a verdict: ``2 claims of 2 drives were not measured``."""
    counts: Counter[str] = Counter()
    runs: dict[str, set[int]] = {}
    for number, checked in enumerate(known):
        for one in checked.by_title.values():
            if checked.judge(one) is ClaimKind.NOT_JUDGED:
                words = "measured" if one.state is ClaimState.NOT_MEASURED else "judged"
                counts[words] += 1
                runs.setdefault(words, set()).add(number)
    for words, count in counts.items():
        verb = {"measured": ("was", "were"), "judged": ("is", "are")}[words][count != 1]
        yield f"{format_count(count, 'claim')} of {format_count(len(runs[words]), what)} {verb} not {words}"


def describe_misses(checked: Checked, columns: Mapping[str, str], most: int) -> str:
    """Return the claims that a run misses: ``4 KiB random write IOPS ≥ 45,000 (41,900, -7.0 %)``.

    The claim with the worst margin is first. If there are at least two claims more than ``most``, the text contains
    only the number of these claims.
    """
    missed = [one for one in checked.by_title.values() if checked.judge(one) is ClaimKind.FAILED]
    missed.sort(key=checked.rank)
    texts = [f"{columns[one.title]} ({_describe_miss(one)})" for one in missed]
    if (more := len(texts) - most) > 1:
        texts[most:] = [f"{more} more"]
    return list_words(texts)


def _describe_miss(finding: ClaimResult, *, is_judged: bool = True) -> str:
    parts = [format_measured(finding)] if finding.value is not None else [finding.state.value]
    if finding.margin_percent is not None:
        parts.append(describe_margin(finding.margin_percent))
    # If a value is not judged because its rounds disagree, the same disagreement also causes its uncertainty. The
    # uncertainty is therefore not mentioned.
    if is_judged and finding.certain is False:
        parts.append(WITHIN_UNCERTAINTY)
    return ", ".join(parts)


def describe_closest(names: Sequence[str], files: Sequence[CheckedFile], columns: Mapping[str, str]) -> str:
    """Return the smallest margin among the runs that miss no claim: ``bay 22: 1024 KiB sequential write throughput ≥
    500 (+0.6 %)``. The text is empty if no such run has a margin.
    """
    found = []
    for name, file in zip(names, files, strict=True):
        checked = file.checked
        if checked is None or checked.count(ClaimKind.FAILED) or (worst := checked.worst) is None:
            continue
        found.append((worst.margin_percent or 0.0, f"{name}: {columns[worst.title]} ({_describe_miss(worst)})"))
    return min(found)[1] if found else ""


def describe_beyond_unjudged(names: Sequence[str], files: Sequence[CheckedFile], columns: Mapping[str, str]) -> str:
    """Return the worst value that is beyond its limit but not judged: ``bay 9: 4 KiB random write IOPS ≥ 45,000
    (10,400, -76.9 %, not steady)``.

    Without this text, the reader would believe that the smallest margin belongs to the worst value. The text is empty
    if there is no such value.
    """
    found = [
        (
            finding.margin_percent,
            f"{name}: {columns[finding.title]}",
            _describe_miss(finding, is_judged=False),
            checked,
            finding,
        )
        for name, file in zip(names, files, strict=True)
        if (checked := file.checked) is not None
        for finding in checked.by_title.values()
        if checked.judge(finding) is ClaimKind.NOT_JUDGED and (finding.margin_percent or 0.0) < 0
    ]
    if not found:
        return ""
    _, claim, value, checked, finding = min(found, key=lambda one: one[0] or 0.0)
    doubts = ", ".join(doubt.value for doubt in checked.find_doubts(finding))
    more = f"; {format_count(len(found) - 1, 'more value')}" if len(found) > 1 else ""
    return f"{claim} ({', '.join(filter(None, (value, doubts)))}){more}"


def find_margin_lines(
    words: str, names: Sequence[str], files: Sequence[CheckedFile], columns: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Return the lines above a matrix of margins, each with its label. The first line shows the smallest margin. The
    second line shows a worse value that is not judged.

    Args:
        words: the label of the smallest margin.
    """
    closest = describe_closest(names, files, columns)
    unjudged = describe_beyond_unjudged(names, files, columns)
    return ((words, closest),) * bool(closest) + (("Beyond its limit, but not judged", unjudged),) * bool(unjudged)


# Section: strips.


def count_tiles(rows: int) -> int:
    """Return the number of tiles that fit above a matrix on a screen of 1,440 x 900 pixels."""
    return TILES_IN_ROW if rows > _MOST_FOR_TWO_ROWS else 2 * TILES_IN_ROW


def build_claim_tiles(
    names: Sequence[str], files: Sequence[CheckedFile], in_cohort: Collection[int]
) -> tuple[HeadlineView, ...]:
    """Return a tile for each claim that has a value for two or more drives. A tile shows a dot for each drive. The
    claim with the smallest margin is first.

    Args:
        names: short names of the drives.
        in_cohort: the places of the drives from which the median and the limits of outliers are computed. These drives
            have the same model. If there are no such drives, the strips have no median.
    """
    tiles: list[tuple[tuple[int, float], HeadlineView]] = []
    for title, column in name_columns(files).items():
        found = []
        for place, file in enumerate(files):
            one = None if file.checked is None else file.checked.by_title.get(title)
            if file.checked is not None and one is not None and one.margin_percent is not None:
                found.append((place, file.checked, one))
        if len(found) >= _FEWEST_IN_STRIP:
            tiles.append(_build_tile(column, names, found, in_cohort))
    return tuple(tile for _, tile in sorted(tiles, key=lambda pair: pair[0]))


def _build_tile(
    column: str, names: Sequence[str], found: Sequence[tuple[int, Checked, ClaimResult]], in_cohort: Collection[int]
) -> tuple[tuple[int, float], HeadlineView]:
    first = found[0][2]
    measure = measure_of(first)
    values = [
        (
            one.value or 0.0,
            Dot(
                share=0.0,
                level=CLAIM_LEVELS.get(checked.judge(one)),
                name=names[place],
                hint=f"{names[place]}: {describe_measured(one)}, {describe_margin(one.margin_percent)}",
            ),
        )
        for place, checked, one in found
    ]
    of_cohort = [
        one.value or 0.0
        for place, checked, one in found
        if place in in_cohort and checked.judge(one) is not ClaimKind.NOT_JUDGED
    ]
    cohort = describe_distribution(of_cohort) if len(of_cohort) >= _FEWEST_IN_COHORT else None
    limit = Limit(
        value=limit_of(first.about), is_least=first.about.at_least is not None, text=describe_limit(first, column)
    )
    judged = [of_drive for of_drive in found if of_drive[1].judge(of_drive[2]) is not ClaimKind.NOT_JUDGED]
    rank, (place, checked, worst) = _find_worst(judged or found)
    failed = checked.judge(worst) is ClaimKind.FAILED
    # Values that are not judged are shown as dots, but the range in the text does not include them.
    known = [one.value or 0.0 for _, _, one in judged]
    spread = (
        f"{format_number(min(known), measure.digits)} to {format_number(max(known), measure.digits)}" if known else ""
    )
    middle = "" if cohort is None else f"median {format_number(cohort.median, measure.digits)}"
    left = len(found) - len(judged)
    sign = (Sign.MISSED_UNSURE if worst.certain is False else Sign.MISSED) if failed else Sign.NONE
    verdict = (
        " ".join(filter(None, (names[place], describe_margin(worst.margin_percent), sign.value))) if judged else ""
    )
    count = format_count(len(values), "drive")
    rest = f"{left} not judged" if left else ""
    text = "; ".join(filter(None, (f"{column}: {count}", middle, spread, f"worst {verdict}" if verdict else "", rest)))
    return rank, HeadlineView(
        label=column,
        text=middle or spread or rest,
        exact=spread,
        sure=spread if middle else "",
        verdict=verdict,
        alarm=failed,
        test="",
        section="",
        strip=build_dot_strip(values, text, cohort=cohort, limit=limit),
    )


def _find_worst(
    found: Sequence[tuple[int, Checked, ClaimResult]],
) -> tuple[tuple[int, float], tuple[int, Checked, ClaimResult]]:
    """Return the drive with the smallest margin of a claim, preceded by the rank of this margin."""
    worst = min(found, key=lambda of_drive: of_drive[1].rank(of_drive[2]))
    return worst[1].rank(worst[2]), worst


def build_claim_bar(checked: Checked, finding: ClaimResult) -> Strip | None:
    """Return the bar that shows the value of a claim and its limit. Return None if there is no value, or if the limit
    cannot be drawn.
    """
    if finding.value is None or finding.about.not_found or finding.value < 0:
        return None
    kind, known = checked.judge(finding), finding.uncertainty
    level: NoteLevel | None = CLAIM_LEVELS.get(kind)
    return build_bar_strip(
        finding.value,
        f"{describe_measured(finding)}, limit {finding.limit}, {describe_margin(finding.margin_percent)}",
        limit=Limit(
            value=limit_of(finding.about), is_least=finding.about.at_least is not None, text=describe_limit(finding)
        ),
        interval=(None, None) if known is None else (known.low, known.high),
        level=level,
    )
