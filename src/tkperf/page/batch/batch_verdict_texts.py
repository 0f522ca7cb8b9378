"""Build the texts about the verdict on a batch: sentences, the title of the batch, and a mail with its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote

from tkperf.analysis.batch_verdict import (
    BatchCode,
    BatchDriveResult,
    BatchResult,
    ModelGroup,
    is_simulated,
    judge_batch,
)
from tkperf.analysis.claim_results import Checked, ClaimKind, ClaimState
from tkperf.analysis.comparing.arrangements import FEWEST_SCORED, Outlier
from tkperf.analysis.verdict import NamedReason, judge_run
from tkperf.model.batch_state import IN_TROUBLE, DriveStage
from tkperf.model.units import drop_controls, format_capacity, format_count, format_duration, format_number, list_names
from tkperf.page.batch.batch_progress import describe_stages, name_stage
from tkperf.page.claim_texts import WITHIN_UNCERTAINTY, describe_margin, name_columns
from tkperf.page.comparison.comparison_charts import choose_cohort_figures
from tkperf.page.comparison.conclusions import find_conclusions
from tkperf.page.comparison.ratio_texts import name_headlines
from tkperf.page.margins import describe_margins_title, describe_misses
from tkperf.page.naming import capitalise, list_words
from tkperf.page.verdict_texts import Verdict, describe_reason, level_of, word_verdict
from tkperf.page.words.uncertainty import two_digits

# Section: the verdict.


# The greatest numbers of reasons, claims and figures in a verdict. A longer verdict would not be clearer. The tables
# contain all reasons, claims and figures.
_MOST_REASONS, _MOST_CLAIMS, _MOST_FIGURES = 6, 3, 2
_MOST_IN_MAIL = 4
MOST_MAIL_LINES = 12


def describe_batch_verdict(batch_result: BatchResult) -> Verdict:
    """Return the verdict on a batch in words: ``Fail: slot 7 (S4510-17) misses 4 KiB random read IOPS ≥ 75,000 (70,300,
    -6 %)``.

    For a batch without claims, return ``24 drives measured: slot 7 (S4510-17) is unlike the others: 4 KiB random read:
    IOPS 12 % lower``.
    """
    judged = judge_batch(batch_result)
    drives = {str(one.number): one for one in batch_result.drives}
    texts = [_describe(reason, batch_result, drives) for reason in judged.reasons]
    shown = list(texts)
    if (more := len(shown) - _MOST_REASONS) > 1:
        shown[_MOST_REASONS:] = [f"and {more} more remarks"]
    return replace(word_verdict(judged, texts, title=_title(batch_result), reasons=shown), level=level_of(judged.state))


def _title(batch_result: BatchResult) -> str:
    simulated = "SIMULATED. " if is_simulated(batch_result.state) else ""
    count, done = len(batch_result.drives), len(batch_result.done)
    if not batch_result.has_claims:
        of = format_count(count, "drive") if done == count else f"{done} of {format_count(count, 'drive')}"
        return f"{simulated}{of} measured"
    kinds = {
        one.checked.judge(finding)
        for one in batch_result.drives
        if one.checked is not None
        for finding in one.checked.not_passed
    }
    if len(batch_result.passing) == count:
        return f"{simulated}Pass"
    return f"{simulated}{'Fail' if ClaimKind.FAILED in kinds else 'Not judged'}"


def describe_batch_title(batch_result: BatchResult) -> str:
    """Return a summary of the drives: ``1 of 24 drives misses 3 claims, 21 pass; 2 claims of 2 drives were not
    measured``.

    For a batch without claims, return ``1 of 24 drives is unlike the others``.
    """
    drives, measured = batch_result.drives, batch_result.done
    count = format_count(len(drives), "drive")
    parts = []
    if batch_result.has_claims:
        files = [one.file for one in drives if one.state.stage is DriveStage.DONE or one.misses]
        parts = [describe_margins_title(files, "drive", len(drives))] if files else ["No drive has been checked"]
    elif far := len(batch_result.outliers):
        parts = [f"{far} of {count} {'is' if far == 1 else 'are'} unlike the others"]
    elif len(measured) == len(drives):
        scored = any(len(group.drives) >= FEWEST_SCORED for group in batch_result.groups)
        parts = [f"{count} measured{', none is unlike the others' if scored else ''}"]
    else:
        parts = [f"{len(measured)} of {count} measured"]
    stages: Counter[DriveStage] = Counter(one.state.stage for one in drives if one.state.stage is not DriveStage.DONE)
    parts += [
        _describe_stage(stage, stages[stage])
        for stage in (*IN_TROUBLE, DriveStage.RUNNING, DriveStage.WAITING)
        if stages[stage]
    ]
    return "; ".join(parts)


def _describe_stage(stage: DriveStage, count: int) -> str:
    drives = format_count(count, "drive")
    match stage:
        case DriveStage.FAILED:
            return f"the run of {drives} failed"
        case DriveStage.CONSENT_ENDED:
            return f"{drives} did not begin"
    verb = "is" if count == 1 else "are"
    if stage in (DriveStage.RUNNING, DriveStage.WAITING):
        return f"{drives} {verb} {stage}"
    return f"{drives} {'was' if count == 1 else 'were'} {stage}"


def _describe(reason: NamedReason, batch_result: BatchResult, drives: Mapping[str, BatchDriveResult]) -> str:
    about = [drives[number] for number in reason.names]
    everyone = 1 < len(about) == len(batch_result.drives)
    names = "all" if everyone else list_names([one.label for one in about])
    match reason.code:
        case BatchCode.DRIVE_FAILED | BatchCode.NOT_ENDED:
            stages = dict.fromkeys(name_stage(one.state.stage, len(about)) for one in about)
            reasons = dict.fromkeys(one.state.text for one in about)
            # Only the first part of the reason is shown, because the message already names the drive and the commands
            # that the user should run next.
            because = f": {next(iter(reasons)).split('; ')[0]}" if len(reasons) == 1 else ""
            if reason.code is BatchCode.DRIVE_FAILED:
                runs = f"the run of {names}" if len(about) == 1 else f"the runs of {names}"
                return drop_controls(f"{runs} failed{_count_not_measured(about)}{because}".rstrip(": "))
            return drop_controls(f"{names} {' or '.join(stages)}{because}".rstrip(": "))
        case BatchCode.UNDER_WAY:
            counts = Counter(one.state.stage.value for one in about)
            return ", ".join(f"{count} {stage}" for stage, count in counts.items())
        case BatchCode.CLAIM_FAILED:
            return "; ".join(_describe_failures(about))
        case BatchCode.CLAIM_NOT_JUDGED:
            return "; ".join(_describe_open_claims(about))
        case BatchCode.NOT_CHECKED:
            return f"{names} could not be checked"
        case BatchCode.OUTLIER:
            return "; ".join(_describe_outlier(one, batch_result) for one in about)
    return _describe_runs(about)


def _count_not_measured(drives: Sequence[BatchDriveResult]) -> str:
    """Return the number of claims without a value: ``, 6 claims were not measured``. The text is empty if the drives
    have no claims, or if all claims have values.
    """
    count = sum(
        each.state is ClaimState.NOT_MEASURED
        for one in drives
        if one.checked is not None
        for each in one.checked.by_title.values()
    )
    return f", {format_count(count, 'claim')} {'was' if count == 1 else 'were'} not measured" if count else ""


def _describe_failures(drives: Sequence[BatchDriveResult]) -> Iterator[str]:
    """Yield a text for each set of missed claims: ``slot 7 (S4510-17) misses 4 KiB random read IOPS ≥ 75,000 (70,300,
    -6.3 %)``. One text names all drives that miss the same claims.
    """
    columns = name_columns([one.file for one in drives])
    alike: dict[tuple[str, ...], list[tuple[BatchDriveResult, Checked]]] = {}
    for one in drives:
        if (checked := one.checked) is not None:
            missed = [title for title, each in checked.by_title.items() if checked.judge(each) is ClaimKind.FAILED]
            alike.setdefault(tuple(missed), []).append((one, checked))
    for titles, of_drives in alike.items():
        (first, checked), several = of_drives[0], len(of_drives) > 1
        if not several:
            yield f"{first.label} misses {describe_misses(checked, columns, _MOST_CLAIMS)}"
            continue
        claims = [columns[title] for title in titles]
        if (more := len(claims) - _MOST_CLAIMS) > 1:
            claims[_MOST_CLAIMS:] = [f"{more} more"]
        names = list_names([one.label for one, _ in of_drives])
        # If the limit of a claim is 0, the claim has no margin in percent.
        margins = [worst.margin_percent or 0.0 for _, each in of_drives if (worst := each.worst) is not None]
        lowest = f", down to {describe_margin(min(margins))}" if margins else ""
        is_unsure = all(each.by_title[title].certain is False for _, each in of_drives for title in titles)
        within = f", {WITHIN_UNCERTAINTY}" if is_unsure else ""
        yield f"{names} miss {list_words(claims)}{lowest}{within}"


def _describe_open_claims(drives: Sequence[BatchDriveResult]) -> Iterator[str]:
    """Yield a text about claims that are not judged: ``slot 9 (S4510-09): 2 of 8 claims not judged (not measured)``.
    One text names all drives with the same numbers.
    """
    alike: dict[str, list[str]] = {}
    for one in drives:
        if (checked := one.checked) is not None:
            open_claims = [each for each in checked.by_title.values() if checked.judge(each) is ClaimKind.NOT_JUDGED]
            doubts = dict.fromkeys(doubt.value for each in open_claims for doubt in checked.find_doubts(each))
            claims = f"{len(open_claims)} of {format_count(len(checked.by_title), 'claim')}"
            alike.setdefault(f"{claims} not judged ({', '.join(doubts)})", []).append(one.label)
    for text, names in alike.items():
        yield f"{list_names(names)}: {text}"


def _describe_outlier(one: BatchDriveResult, batch_result: BatchResult) -> str:
    """Return a text about an outlier: ``slot 7 (S4510-17) is unlike the others: 4 KiB random read: IOPS 12 %
    lower``.
    """
    # The drives are compared by number, because the records of the drives on the page can contain the addresses of
    # reports, whereas the records in the group do not.
    (group,) = (group for group in batch_result.groups if one.number in (other.number for other in group.drives))
    names, found = name_headlines(group.compared), batch_result.outliers[one.number]
    parts = [
        f"{_in_sentence(names[figure.row.place])} {describe_distance(outlier)}"
        for outlier, figure in found[:_MOST_FIGURES]
    ]
    if more := len(found) - _MOST_FIGURES:
        parts += [format_count(more, "more figure")] if more > 0 else []
    return f"{one.label} is unlike the others: {', '.join(parts)}"


def _in_sentence(name: str) -> str:
    """Return the name of a figure in the form that a sentence needs: ``4 KiB random read IOPS``."""
    return name if "," in name else name.replace(": ", " ")


def describe_distance(outlier: Outlier) -> str:
    """Return the distance of an outlier from the median in words: ``12 % lower``, or ``3.1 times as high`` for a
    distance above 100 %.
    """
    percent = outlier.from_median_percent
    if percent >= 100:
        return f"{1 + percent / 100:.1f} times as high"
    return f"{two_digits(abs(percent))} % {'higher' if percent > 0 else 'lower'}"


def _describe_runs(drives: Sequence[BatchDriveResult]) -> str:
    """Return the gravest reasons among the verdicts on the runs. One text names all drives with the same reason."""
    alike: dict[str, list[str]] = {}
    for one in drives:
        if one.result is not None:
            reason = judge_run(one.result).reasons[0]
            alike.setdefault(describe_reason(reason, one.result), []).append(one.label)
    several = len(drives) > 1
    return "; ".join(
        f"{'all' if several and len(names) == len(drives) else list_names(names)}: {text}"
        for text, names in alike.items()
    )


def name_model(batch_result: BatchResult, group: ModelGroup) -> str:
    """Return the model and the capacity of a group as the end of a title. The text is empty if there is only one
    group.
    """
    if len(batch_result.groups) < 2:
        return ""
    device = group.compared.results[0].info.device
    capacity = device.get("capacity_bytes")
    size = format_capacity(capacity) if isinstance(capacity, int) else None
    model = drop_controls(str(device.get("model") or "unknown model"))
    return f": {', '.join(filter(None, (model, size)))}"


# Section: sentences.


def find_sentences(batch_result: BatchResult) -> Iterator[str]:
    """Yield the sentences at the top of the page: the spread of the figures, the temperatures, and the drives that were
    measured at the same time.
    """
    if batch_result.groups:
        # The outliers are omitted, because the verdict already names them.
        left_out = ("Outlier ", "No outlier") if batch_result.outliers else "Outlier "
        found = (text for group in batch_result.groups for text in find_conclusions(group.compared))
        yield from dict.fromkeys(text for text in found if not text.startswith(left_out))
        if others := [one.label for one in batch_result.without_group if one not in batch_result.damaged]:
            yield f"Not compared, as of another model or capacity: {list_names(others)}."
    elif batch_result.not_compared:
        yield f"The drives are not compared with each other: {batch_result.not_compared}."
    if damaged := [one.label for one in batch_result.damaged]:
        yield f"Not compared, as the run file is damaged: {list_names(damaged)}."
    yield from describe_heat([(one.hottest_c, one.label) for one in batch_result.drives if one.hottest_c is not None])
    throttled = [one for one in batch_result.drives if one.throttled_s]
    if throttled:
        times = (f"{one.label} ({format_duration(one.throttled_s or 0)})" for one in throttled)
        yield f"Throttled for heat: {', '.join(times)}."
    yield from (drop_controls(note) for note in batch_result.state.notes)


def describe_heat(hot: Sequence[tuple[float, str]]) -> Iterator[str]:
    """Yield sentences about the highest temperature of each drive. One sentence names all drives whose temperatures are
    equal in whole degrees.
    """
    if not hot:
        return
    (most, hottest), (least, _) = max(hot), min(hot)
    if len(hot) == 1:
        yield f"{capitalise(hottest)} reached {most:.0f} °C."
    elif f"{most:.0f}" == f"{least:.0f}":
        yield f"Each of {len(hot)} drives reached {most:.0f} °C."
    else:
        yield f"The hottest drive, {hottest}, reached {most:.0f} °C; the coolest drive reached {least:.0f} °C."


# Section: a mail.


def build_batch_mail(batch_result: BatchResult) -> tuple[str, ...]:
    """Return the lines of a mail with the results. There are no more than twelve lines."""
    verdict = describe_batch_verdict(batch_result)
    title = describe_batch_title(batch_result)
    # If the batch has no claims, the verdict is omitted here, because the title already begins with the verdict.
    answer = title if title.startswith(verdict.title) else f"{verdict.title}: {title}"
    lines = [f"{drop_controls(batch_result.state.name)}: {answer}", *(f"- {text}" for text in verdict.reasons)]
    stages = describe_stages(batch_result.state)
    if len(batch_result.done) < len(batch_result.drives):
        lines.insert(1, "; ".join(stages.reasons))
    rest = [text for text in find_sentences(batch_result) if not text.startswith("Headline")]
    figures = []
    for group in batch_result.groups:
        names, of = name_headlines(group.compared), name_model(batch_result, group).removeprefix(": ")
        for figure in choose_cohort_figures(group.compared, _MOST_IN_MAIL // len(batch_result.groups) or 1):
            found, measure = figure.distribution, figure.row.quantity
            ends = [format_number(end, measure.digits) for end in (found.lowest, found.highest)]
            median = format_number(found.median, measure.digits)
            text = f"{names[figure.row.place]}: median {median}, {ends[0]} to {ends[1]}"
            figures.append(f"{of}: {text}" if of else text)
    del figures[_MOST_IN_MAIL:]
    end = f"Page: tkperf report {quote(batch_result.state.path)}"
    if any(one.state.stage in IN_TROUBLE for one in batch_result.drives):
        end += f"; continue: tkperf resume {quote(batch_result.state.path)}"
    lines = lines[: MOST_MAIL_LINES - 4] + figures + rest
    return (*lines[: MOST_MAIL_LINES - 1], end)
