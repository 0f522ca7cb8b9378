"""Series of fio's results. This module determines which results are rounds of the same series. It also determines the
order and the numbers of these rounds, and the section of the series.

The loads of a section have the same access and the same demand. If a cell has two series, the section's name also
contains the differences between them. tkperf judges each cell by the cell's own rounds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from tkperf.interop.fio_series import CellSeries, Result
from tkperf.interop.imported import (
    NaturalKey,
    Remarks,
    family_of_file,
    find_numbers,
    find_rounds,
    natural_key,
    rank_of_rounds,
    readable,
    split_path,
)
from tkperf.model.figures import LoadCaution
from tkperf.model.workload import Workload

_LARGEST_COUNTER = 10  # the limit for a counter, as a multiple of the number of files
_MOST_NAMED = 3  # the greatest number of streams in the name of a section
# These texts become parts of section names, like names that the user chose.
_FILL = "fill by amount"
_WITH_OTHER_FILES = "at once with another file"


def arrange_series(results: Iterable[Result], names: Sequence[str], remarks: Remarks) -> list[CellSeries]:
    """Return the results as series, each with its section.

    The order of the files does not change the order of the series.

    Args:
        results: results of all files.
        names: names of the files, indexed by ``Result.source``.
        remarks: receives remarks on the order of rounds.
    """
    by_key: dict[object, CellSeries] = {}
    for result in results:
        key = result.workload, result.series_key
        series = by_key.setdefault(key, CellSeries(workload=result.workload, series_key=result.series_key))
        series.rounds.append(result)
    keys = [natural_key(name) for name in names]
    run_folders = _find_run_folders(by_key.values(), names)
    divided = [
        part
        for series in by_key.values()
        for run in _divide_by_folder(series, names, run_folders)
        for part in _divide_by_start(run)
    ]
    run_words = {word for series in divided for word in _find_run_words(series, names)}
    divided = [part for series in divided for part in _divide_by_name(series, names, run_words)]
    divided = [part for series in divided for part in _divide_by_time(series, names, keys, remarks)]
    for fill in _find_fills(divided):
        always = (*fill.series_key.always, _FILL)
        fill.series_key = replace(fill.series_key, always=always, prepares=True)
    for series in divided:
        _order(series, names, keys, remarks, run_words)
    in_order = sorted(divided, key=lambda series: _order_key(series.rounds[0], keys))
    _name_sections(in_order, names)
    # Series with additional words in their section's name are sorted last.
    return sorted(in_order, key=lambda series: "," in series.section)


def _find_fills(all_series: Sequence[CellSeries]) -> list[CellSeries]:
    """Return loads that prepare the drive. Such a load wrote a given amount sequentially and only once, while other
    loads of the same files ran for a given time.

    If no load ran for a given time, or if the writes were repeated in rounds, the writes may be the measurement.
    """
    if not any(one.series_key.runtime_s and not one.series_key.prepares for one in all_series):
        return []
    return [
        one
        for one in all_series
        if one.series_key.writes_amount and not one.series_key.prepares and len(one.rounds) == 1
    ]


# Division of series


def _find_run_folders(all_series: Iterable[CellSeries], names: Sequence[str]) -> set[str]:
    """Return the folders that each contain a whole run.

    In some series, several such folders contain rounds under the same names. The numbers of these folders count runs,
    not rounds. Each folder therefore separates all results below it from the results of other runs, including the fill.
    """
    found: set[str] = set()
    for series in all_series:
        folders: dict[str, list[str]] = {}
        for result in series.rounds:
            folder, file = split_path(names[result.source])
            folders.setdefault(folder, []).append(file)
        counted = any(
            len({family_of_file(file) for file in set(files)}) < len(set(files)) for files in folders.values()
        )
        times_given = Counter(file for files in folders.values() for file in set(files))
        if counted and max(times_given.values()) > 1:
            paths = [folder.split("/") for folder in folders]
            shared = 0
            while len({tuple(path[: shared + 1]) for path in paths}) == 1:
                shared += 1
            found |= {"/".join(path[: shared + 1]) for path in paths}
    return found


def _divide_by_folder(series: CellSeries, names: Sequence[str], run_folders: set[str]) -> Iterator[CellSeries]:
    """Yield a series for each folder that contains a run. Loads that prepare the drive are divided by every folder,
    because each run prepares the drive again.
    """
    by_folder: dict[str, list[Result]] = {}
    for result in series.rounds:
        folder = split_path(names[result.source])[0]
        if not series.series_key.prepares:
            parts = folder.split("/")
            above = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
            folder = next((folder for folder in above if folder in run_folders), "")
        by_folder.setdefault(folder, []).append(result)
    if len(by_folder) == 1:
        yield series
        return
    for folder, rounds in by_folder.items():
        yield _part_of(series, rounds, folder=f"{series.series_key.folder} {folder}")


def _divide_by_start(series: CellSeries) -> Iterator[CellSeries]:
    """Yield a series for each start address on the device. If there is only one start address, or if an address occurs
    only once, the series is not divided.
    """
    by_start: dict[str | None, list[Result]] = {}
    for result in series.rounds:
        by_start.setdefault(result.start, []).append(result)
    # If an address occurs only once, the rounds may advance through the device: each round then continues where the
    # previous round ended.
    if len(by_start) == 1 or min(map(len, by_start.values())) == 1:
        yield series
        return
    for start, rounds in by_start.items():
        conditions = (*series.series_key.conditions, ("offset", str(start)))
        yield _part_of(series, rounds, conditions=tuple(sorted(conditions)))


def _part_of(series: CellSeries, rounds: list[Result], **changes: object) -> CellSeries:
    series_key = replace(series.series_key, **changes)  # type: ignore[arg-type]
    return CellSeries(workload=series.workload, series_key=series_key, rounds=rounds)


def _columns(rounds: Sequence[Result], names: Sequence[str]) -> dict[tuple[str, str], list[int]]:
    """Return the numbers that count rounds in the names of all these results. The key consists of the place of the
    number in the name and the word before the number.
    """
    found = [find_rounds(names[result.source], result.job) for result in rounds]
    shared = set(found[0]).intersection(*found[1:])
    return {column: [of[column] for of in found] for column in sorted(shared, key=rank_of_rounds)}


def _find_run_words(series: CellSeries, names: Sequence[str]) -> Iterator[str]:
    """Yield the words before numbers that count runs.

    If names contain two numbers that count, the first number counts the rounds of a run, and the function yields the
    word before the second number.
    """
    columns = _columns(series.rounds, names)
    varying = [column for column, values in columns.items() if len(set(values)) > 1]
    if len(varying) < 2 or len(set(columns[varying[0]])) == len(series.rounds):
        return
    if len(set(zip(*(columns[column] for column in varying), strict=True))) == len(series.rounds):
        yield from (word for _, word in varying[1:] if word != varying[0][1])


def _divide_by_name(series: CellSeries, names: Sequence[str], run_words: set[str]) -> Iterator[CellSeries]:
    """Yield a series for each run, if the names count both runs and rounds, as in ``run2_round5`` and ``980pro_5``."""
    runs = _group_by_run(series, names, run_words)
    if len(runs) == 1:
        yield series
        return
    for run, rounds in runs.items():
        yield _part_of(series, rounds, file=f"{series.series_key.file} {run}")


def _group_by_run(series: CellSeries, names: Sequence[str], run_words: set[str]) -> dict[object, list[Result]]:
    rounds = series.rounds
    whole: dict[object, list[Result]] = {(): rounds}
    columns = _columns(rounds, names)
    if series.series_key.prepares:
        run_words = run_words | {"run"}
    of_runs = [values for (_, word), values in columns.items() if word in run_words]
    if any(len(set(values)) > 1 for values in of_runs):
        return _group(rounds, list(zip(*of_runs, strict=True)))
    counts = next((values for values in columns.values() if len(set(values)) > 1), None)
    if len({result.source for result in rounds}) < len(rounds):
        return whole  # several results of one file keep the order of the file
    numbers = [find_numbers(names[result.source]) for result in rounds]
    if len({len(of_name) for of_name in numbers}) > 1:
        return whole
    varying = [list(column) for column in zip(*numbers, strict=True) if len(set(column)) > 1]
    if any(len(set(column)) == len(rounds) for column in varying):
        return whole
    if counts is None:
        counts = varying[-1] if varying else None
    others = [column for column in varying if column != counts]
    if counts is None or len(set(counts)) == len(rounds) or not others:
        return whole
    runs = _group(rounds, list(zip(*others, strict=True)))
    by_result = dict(zip(map(id, rounds), counts, strict=True))
    is_clear = all(len({by_result[id(one)] for one in run}) == len(run) for run in runs.values())
    return runs if is_clear else whole


def _divide_by_time(
    series: CellSeries, names: Sequence[str], keys: Sequence[NaturalKey], remarks: Remarks
) -> Iterator[CellSeries]:
    """Yield a separate series for each result that was measured at the same time as a result of another file.

    Such results either shared one drive, or are from several drives. In neither case are they rounds of one series.
    """
    overlapping: list[Result] = []
    if all(result.written_ms is not None for result in series.rounds):
        in_time = sorted(series.rounds, key=lambda result: _order_key(result, keys))
        overlapping = _find_overlapping(in_time, names, remarks)
    apart = set(map(id, overlapping))
    if rest := [result for result in series.rounds if id(result) not in apart]:
        yield _part_of(series, rest)
    key = series.series_key
    shared = {*key.cautions, LoadCaution.SHARED_LOAD}
    for result in overlapping:
        yield _part_of(
            series,
            [result],
            file=names[result.source],
            always=(*key.always, _WITH_OTHER_FILES),
            cautions=tuple(caution for caution in LoadCaution if caution in shared),
        )


def _find_overlapping(in_time: Sequence[Result], names: Sequence[str], remarks: Remarks) -> list[Result]:
    """Return each result whose load ran at the same time as the load of the previous or next result in time, if that
    other result is from another file.
    """
    found: dict[int, Result] = {}
    for before, after in pairwise(in_time):
        ran_ms = after.measurement.duration_s * 1000
        passed_ms = (after.written_ms or 0.0) - (before.written_ms or 0.0)
        if before.source != after.source and passed_ms < 0.5 * ran_ms - 1000:
            found |= {id(before): before, id(after): after}
            remarks.say(
                "rounds-overlap",
                "results of one workload were measured at the same time: either they shared one drive, or "
                "they are from several drives; they are not rounds, so each has a separate section",
                names[after.source],
                f" (with {readable(names[before.source])})",
            )
    return list(found.values())


def _group(rounds: Sequence[Result], by: Sequence[object]) -> dict[object, list[Result]]:
    groups: dict[object, list[Result]] = {}
    for result, value in zip(rounds, by, strict=True):
        groups.setdefault(value, []).append(result)
    return groups


# Order and numbers


def _order_key(result: Result, keys: Sequence[NaturalKey]) -> tuple[object, ...]:
    stamp = float("inf") if result.written_ms is None else result.written_ms
    return stamp, keys[result.source], result.place


def _order(
    series: CellSeries, names: Sequence[str], keys: Sequence[NaturalKey], remarks: Remarks, run_words: set[str]
) -> None:
    """Set the numbers of the rounds of a series. The number of a round is the number in its name. If the names contain
    no such numbers, rounds are numbered in the order of the times that fio wrote. If a time is not known, rounds are
    numbered in the order of the files' names.
    """
    by_name = sorted(series.rounds, key=lambda result: (keys[result.source], result.place))
    in_time = sorted(series.rounds, key=lambda result: _order_key(result, keys))
    is_timed = all(result.written_ms is not None for result in by_name)
    rounds = in_time if is_timed else by_name
    if not is_timed and len({result.source for result in by_name}) > 1:
        for result in by_name:
            if result.written_ms is None:
                remarks.say(
                    "no-time-stamps",
                    "no time in the results: the rounds are in the order of the files' names, where r2 is before r10",
                    names[result.source],
                )
    series.rounds, series.numbers = rounds, tuple(range(1, len(rounds) + 1))
    numbers = _numbers_in_names(rounds, names, remarks, run_words)
    if numbers is None:
        numbers = _find_counter(rounds, names)
        if numbers is not None and list(numbers) != sorted(numbers):
            numbers = None  # in this case, the number does not count rounds
            _remark_on_order(rounds, names, remarks)
    elif is_timed and list(numbers) != sorted(numbers):
        _remark_on_order(rounds, names, remarks)
    if numbers is not None:
        in_order = sorted(zip(numbers, range(len(rounds)), strict=True))
        series.rounds = [rounds[at] for _, at in in_order]
        series.numbers = tuple(number for number, _ in in_order)


def _remark_on_order(rounds: Sequence[Result], names: Sequence[str], remarks: Remarks) -> None:
    for displaced in _find_displaced(rounds, names):
        remarks.say(
            "order-conflict",
            "the numbers in the names are not in the order of the times that fio wrote: a round "
            "with a number after a word such as 'round' keeps this number, and the other rounds are "
            "in the order of the times",
            names[displaced.source],
        )


def _numbers_in_names(
    rounds: Sequence[Result], names: Sequence[str], remarks: Remarks, run_words: set[str]
) -> list[int] | None:
    """Return the numbers that follow words for rounds. None means that some names have no number, or that two names
    have the same number.
    """
    columns = {column: values for column, values in _columns(rounds, names).items() if column[1] not in run_words}
    for values in columns.values():
        if len(set(values)) == len(values):
            return values
    sources = {result.source for result in rounds}
    numbered = [result.source for result in rounds if find_rounds(names[result.source], result.job)]
    if len(sources) > 1 and numbered and not run_words:
        remarks.say(
            "rounds-counted",
            "some names contain no round number, or a number occurs twice: tkperf numbers the "
            "rounds in their order instead",
            names[numbered[0]],
        )
    return None


def _find_counter(rounds: Sequence[Result], names: Sequence[str]) -> list[int] | None:
    """Return the only number that differs between the names, if this number may count rounds.

    A number that is much larger than the number of files is a time or the id of a process.
    """
    if len(rounds) < 2 or len({result.source for result in rounds}) < len(rounds):
        return None
    numbers = [find_numbers(names[result.source]) for result in rounds]
    if len({len(of_name) for of_name in numbers}) > 1:
        return None
    varying = [list(column) for column in zip(*numbers, strict=True) if len(set(column)) > 1]
    if len(varying) != 1 or len(set(varying[0])) < len(rounds):
        return None
    (counter,) = varying
    return counter if max(counter) <= _LARGEST_COUNTER * len(rounds) else None


def _find_displaced(rounds: Sequence[Result], names: Sequence[str]) -> Iterator[Result]:
    """Yield each result that is older than a result with a smaller counter in its file name, if these two results
    follow each other in time.

    A counter is the only number that differs between names, and is not much larger than the number of files. A larger
    number is a process id or a time.
    """
    families: dict[str, list[Result]] = {}
    for result in rounds:
        families.setdefault(family_of_file(names[result.source]), []).append(result)
    for family in families.values():
        numbers = [map(int, re.findall(r"\d{1,30}", names[result.source])) for result in family]
        counters = [column for column in zip(*numbers, strict=False) if len(set(column)) > 1]
        if len(counters) == 1 and max(counters[0]) <= _LARGEST_COUNTER * len(family):
            numbered = zip(family, counters[0], strict=True)
            for (result, counter), (_, next_counter) in pairwise(numbered):
                if next_counter < counter:
                    yield result


def _name_sections(all_series: Sequence[CellSeries], names: Sequence[str]) -> None:
    """Set the section of each series.

    If a cell has several series, the names of their sections include the differences between them.
    """
    rivals: dict[tuple[str, Workload | None], list[CellSeries]] = {}
    for series in all_series:
        series.section = ", ".join((_base_name(series.workload), *series.series_key.always))
        rivals.setdefault(_cell_of(series.section, series.workload), []).append(series)
    taken: set[tuple[str, Workload | None]] = set()
    for group in rivals.values():
        labels = _labels(group, names)
        for series, differences in zip(group, labels, strict=True):
            name, count = ", ".join((series.section, *differences)), 1
            while (place := _cell_of(name, series.workload)) in taken:
                count += 1
                name = ", ".join((series.section, *differences, f"({count})"))
            taken.add(place)
            series.section = name


def _labels(group: Sequence[CellSeries], names: Sequence[str]) -> list[list[str]]:
    """Return, for each series of a cell, the values of the properties in which these series differ.

    The name of a file, and the jobs that ran at the same time, are included only if no other property separates the
    series.
    """
    places = [split_path(names[series.rounds[0].source]) for series in group]
    folders = _name_folders([folder for folder, _ in places])
    labels: list[list[str]] = [[] for _ in group]

    def add(values: Sequence[object], texts: Sequence[str]) -> None:
        if len(set(values)) > 1:
            for of_series, text in zip(labels, texts, strict=True):
                of_series.append(readable(text[:80]).replace("\n", " "))

    keys = [series.series_key for series in group]
    # For a single load, the name of a section contains the demand of the load. For a combination, the name contains
    # only the names of the streams.
    if all(series.workload.is_combination for series in group):
        add([series.workload for series in group], [key.beside.own for key in keys])
    hosts = [f"host {key.host}" if key.host else "no host named" for key in keys]
    add([key.host for key in keys], hosts)
    add([key.job for key in keys], [f"job {series.rounds[0].job}" for series in group])
    add([key.folder for key in keys], [f"in {folder}" for folder in folders])
    runtimes = ["no runtime" if key.runtime_s is None else f"runtime {key.runtime_s:g} s" for key in keys]
    add([key.runtime_s for key in keys], runtimes)
    options = [dict(key.conditions) for key in keys]
    for name in sorted({name for conditions in options for name in conditions}):
        values = [conditions.get(name) for conditions in options]
        texts = [f"no {name}" if value is None else f"{name}={value}"[:60] for value in values]
        add(values, texts)
    if len(set(map(tuple, labels))) < len(group):
        files = _name_files([file for _, file in places])
        add([key.file for key in keys], [f"file {file}" for file in files])
    labels = [of_series[:4] for of_series in labels]
    if len(set(map(tuple, labels))) < len(group):
        words = [key.beside.words_of_hosts or "no other host" for key in keys]
        add(words, words)
    return labels


def _name_folders(folders: Sequence[str]) -> list[str]:
    """Return the parts of the paths in which the folders differ. If such a part is only a number, also return the part
    above it.
    """
    paths = [folder.split("/") for folder in folders]
    first = 0
    while first < min(map(len, paths)) and len({path[first] for path in paths}) == 1:
        first += 1
    last = max(map(len, paths))
    if len(set(map(len, paths))) == 1:
        last = max((at for at in range(last) if len({path[at] for path in paths}) > 1), default=first) + 1
    parts = [path[first:last] for path in paths]
    if first and not all(any(map(str.isalpha, "".join(part))) for part in parts):
        parts = [[path[first - 1], *part] for path, part in zip(paths, parts, strict=True)]
    return ["/".join(part) or "." for part in parts]


def _name_files(files: Sequence[str]) -> list[str]:
    """Return the words in which the names of the files differ, without counts of rounds. If there are no such words,
    return the whole names.
    """
    # The function of a PCI address, as in 01:00.0, is not a separate word.
    words = [re.split(r"(?:[-_ ()]|\.(?![0-7](?!\w)))+", file) for file in files]
    if len(set(map(len, words))) > 1:
        return list(files)
    differing = [at for at in range(len(words[0])) if len({family_of_file(of_file[at]) for of_file in words}) > 1]
    named = ["-".join(of_file[at] for at in differing) for of_file in words]
    return named if len(set(named)) == len(set(files)) and all(named) else list(files)


def _cell_of(section: str, workload: Workload) -> tuple[str, Workload | None]:
    """Return the place of a series in a section. Each combination has a separate section."""
    return section, None if workload.is_combination else workload


def _base_name(workload: Workload) -> str:
    if workload.is_combination:
        names = [stream.name for stream in workload.together]
        more = len(names) - _MOST_NAMED
        return f"fio {' + '.join(names[:_MOST_NAMED])}" + (f" and {more} more" if more > 0 else "")
    return f"fio {workload.access.order} TC{workload.jobs}/QD{workload.io_depth}"
