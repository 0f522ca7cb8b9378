"""Build the names of workloads and their places in a table. Both depend on the axes in which the workloads differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tkperf.analysis.workload_axes import (
    ACCESS,
    AXES,
    BLOCKS,
    MIX,
    STREAM,
    WorkloadAxis,
    find_axes,
    name_stream,
    place_of,
    text_on,
)
from tkperf.model.quantity import LATENCY_MAX, LATENCY_MEAN, LATENCY_MIN, PERCENTILES, Quantity
from tkperf.model.units import capital, format_block_size_kib
from tkperf.model.workload import Access, Workload

MIX_TITLE = MIX.title
_UNIT = re.compile(r" \([^()]*\)")
_TWO_HYPHENS = re.compile("(?=--)")
_NOT_IN_A_LINK = re.compile(r"[^a-z0-9.]+")


def capitalise(text: str) -> str:
    """Return the text with a capital letter if it begins with a word. A text such as ``p99 latency`` is not changed."""
    first = text.split(" ", maxsplit=1)[0].rstrip(",")
    return capital(text) if first.isalpha() else text


def list_words(words: Sequence[str]) -> str:
    """Return a list such as ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def name_axes(titles: Iterable[str]) -> tuple[str, ...]:
    """Return the names of axes in words, for their titles: ``block size``, ``R/W mix``."""
    words = (title.split(" (")[0].replace(" %", " mix") for title in titles)
    return tuple(word[0].lower() + word[1:] if word[1:2].islower() else word for word in words)


def describe_axes(titles: Iterable[str]) -> str:
    """Return the names of axes as one text, for their titles: ``block size and R/W mix``."""
    return list_words(name_axes(titles))


def describe_curves(axes: Sequence[WorkloadAxis]) -> str:
    """Return a text about the axes in which the curves of a chart differ: ``, one curve for each R/W mix``. The text is
    empty for a single curve.
    """
    return f", one curve for each {describe_axes(axis.title for axis in axes)}" if axes else ""


def describe_quantities(quantities: Sequence[Quantity]) -> str:
    """Return the title of an axis for several quantities: ``Latency (µs)``."""
    if len(quantities) == 1:
        return quantities[0].title
    kinds = {(quantity.label.split(" ")[-1], quantity.unit) for quantity in quantities}
    return ", ".join(f"{capitalise(kind)} ({unit})" for kind, unit in sorted(kinds))


def name_quantities(quantities: Sequence[Quantity]) -> str:
    """Return the name of several quantities without a unit: ``Latency``. The axis of the chart determines the unit."""
    return capitalise(_UNIT.sub("", describe_quantities(quantities)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """The names of the curves or bars of a chart. The names depend on the axes in which the curves or bars differ."""

    axes: tuple[WorkloadAxis, ...]

    @property
    def title(self) -> str:
        """Return the title of the legend or of the axis."""
        if len(self.axes) == 1:
            return self.axes[0].title
        if not self._has_both:
            return ", ".join(axis.title for axis in self.axes)
        titles = [axis.title for axis in self.axes if axis not in (MIX, BLOCKS)]
        # The titles have the same order as the words in a name.
        return ", ".join(("R/W %, block size", *titles))

    @property
    def _has_both(self) -> bool:
        """Return whether names contain both mix and block size. A name omits an axis in which the workloads do not
        differ.
        """
        return {MIX, BLOCKS} <= set(self.axes)

    def name_of(self, workload: Workload) -> str:
        if len(self.axes) == 1:
            return self.axes[0].text(workload)
        if not self._has_both:
            return " ".join(axis.words(workload) for axis in self.axes)
        return name_within(workload, self.axes)

    def words(self, workload: Workload) -> str:
        """Return a name that is clear without the title of the axis: ``4 KiB`` instead of ``4``."""
        if len(self.axes) != 1:
            return self.name_of(workload)
        (axis,) = self.axes
        sizes = axis is BLOCKS and not workload.block_mix
        return f"{axis.text(workload)} KiB" if sizes else axis.words(workload)


def find_naming(workloads: Iterable[Workload]) -> Naming:
    """Return names that distinguish these workloads. The name of a single workload is its block size. The name of a
    stream is its name in the combination.
    """
    several = list(workloads)
    return Naming(axes=(STREAM,) if is_one_combination(several) else find_axes(several) or (BLOCKS,))


def is_one_combination(workloads: Iterable[Workload]) -> bool:
    """Return whether the workloads are streams of a single combination, so that the names of the streams distinguish
    them.
    """
    combinations = {workload.together for workload in workloads}
    return len(combinations) == 1 and () not in combinations


def describe_direction(workloads: Iterable[Workload], read_percent: int) -> str:
    """Return the name of one mix: ``SEQ reads``. If the mix is used with several kinds of access, the name does not
    contain the access.
    """
    of_mix = [workload for workload in workloads if workload.read_percent == read_percent]
    orders = {ACCESS.text(workload) for workload in of_mix}
    direction = {100: "reads", 0: "writes"}.get(read_percent, MIX.words(of_mix[0]))
    return f"{orders.pop()} {direction}" if len(orders) == 1 else direction


def name_links(key: str, workloads: Iterable[Workload]) -> dict[Workload, str]:
    """Return a key for each workload of a section. The key contains only characters that are allowed in an address.

    Mix and block size are first, as in all earlier reports, so that old links remain valid. The other axes in which the
    workloads differ follow.
    """
    several = list(dict.fromkeys(workloads))
    axes = [
        axis
        for axis in find_axes(several)
        if axis is not MIX and (axis is not BLOCKS or any(workload.block_mix for workload in several))
    ]
    links: dict[Workload, str] = {}
    begun: Counter[str] = Counter()
    """For each text, the number of links that are equal to this text, or that begin with this text and two hyphens."""
    for workload in several:
        words = (axis.words(workload).lower() for axis in axes)
        slug = (_NOT_IN_A_LINK.sub("-", word).strip("-") for word in words)
        whole = "-".join((key, f"{workload.read_percent}-{workload.block_size_bytes}", *slug))
        again = begun[whole]
        link = f"{whole}--{again + 1}" if again else whole
        links[workload] = link
        begun.update((link, *(link[: found.start()] for found in _TWO_HYPHENS.finditer(link))))
    return links


def address(link: str, part: str = "", mark: str = "") -> str:
    """Return the address that opens a cell, a part of the cell, and one of its latencies.

    Args:
        link: the key from ``name_links``; empty if there is no address.
        part: a number, or the key of a ``PartShownView``; empty for the part that the figures of the section describe.
        mark: the short name of a quantity; empty for no mark.

    Examples: ``iops0-0-4096``, ``lat0-0-4096//p99.9``, ``writesat0-0-4096/12/max``.
    """
    return "/".join((link, part, mark)).rstrip("/") if link else ""


def name_within(workload: Workload, axes: Sequence[WorkloadAxis]) -> str:
    """Return a name for a workload. The name consists of the fields in which the workloads of the section differ."""
    if workload.together:
        return name_stream(workload) if workload.stream else "all streams"
    named = [axis for axis in axes if axis not in (MIX, BLOCKS)]
    # In tables, mix and block size have the same form as in the names of tracking variables.
    words = [workload.mix_and_size] if len(named) < len(axes) or not axes else []
    return " ".join((*words, *(axis.words(workload) for axis in named)))


def name_in_choice(workload: Workload) -> str:
    """Return the name of a load for a list from which a reader chooses. A stream has a short name."""
    return name_within(workload, ()) if workload.together else str(workload)


ORDERS = {Access.RANDOM: "random", Access.SEQUENTIAL: "sequential"}


def name_blocks(workload: Workload) -> str:
    """Return the block size in words: ``4 KiB``, ``12 block sizes``."""
    if workload.block_mix:
        return f"{len(workload.block_mix)} block sizes"
    return f"{format_block_size_kib(workload.block_size_bytes)} KiB"


def name_figure(workload: Workload) -> str:
    """Return the label of a figure: ``4 KiB random write``. The label of a stream contains the name of the stream."""
    if workload.is_combination:
        return "all streams"
    if workload.stream is not None:
        return f"{name_stream(workload)}: {name_figure(replace(workload, stream=None, together=()))}"
    blocks = name_blocks(workload) + "," * bool(workload.block_mix)
    if workload.trims:
        return f"{blocks} {ORDERS[workload.access]} trim"
    return name_load(blocks, workload.access, workload.read_percent)


def name_load(blocks: str, access: Access | None, read_percent: int | None) -> str:
    """Return a load in words: ``4 KiB random write``, ``4 KiB random, 65 % reads``. Unknown parts are omitted."""
    words = [blocks, ORDERS[access] if access else "", _DIRECTIONS.get(read_percent, "")]
    mix = f", {read_percent} % reads" * (read_percent not in _DIRECTIONS)
    return " ".join(filter(None, words)) + mix


def summarise_loads(workloads: Iterable[Workload]) -> str:
    """Return the properties that loads have in common: ``random, TC1 to TC32/QD16``, ``4 KiB random write,
    TC4/QD32``.
    """
    several = tuple(dict.fromkeys(workloads))
    if not several:
        return ""
    blocks = {name_blocks(work) for work in several}
    orders = {work.access for work in several}
    mixes = {work.read_percent for work in several}
    load = name_load(
        blocks.pop() if len(blocks) == 1 else "",
        orders.pop() if len(orders) == 1 else None,
        mixes.pop() if len(mixes) == 1 else None,
    )
    demand = "/".join(
        f"{word}{min(values)}" + (f" to {word}{max(values)}" if min(values) < max(values) else "")
        for word, values in (("TC", {work.jobs for work in several}), ("QD", {work.io_depth for work in several}))
    )
    return ", ".join(filter(None, (load, demand)))


_DIRECTIONS = {100: "read", 0: "write", None: ""}


def listing_axes(workloads: Iterable[Workload]) -> tuple[WorkloadAxis, ...]:
    """Return the fields that a list shows for each workload. These fields are the block size, the mix, and all other
    fields in which the workloads differ.
    """
    varying = find_axes(workloads)
    return tuple(axis for axis in AXES if axis in varying or axis in (BLOCKS, MIX))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """An arrangement of workloads in rows and columns. ``at`` contains None at places where no workload was measured.

    Attributes:
        row_axes: the fields of the rows. A row shows the text of each field.
        column_axis: the field of the columns.
        rows, columns: one workload for each row and each column. The fields of this workload identify the row or the
            column.
    """

    row_axes: tuple[WorkloadAxis, ...]
    column_axis: WorkloadAxis
    rows: tuple[Workload, ...]
    columns: tuple[Workload, ...]
    at: tuple[tuple[Workload | None, ...], ...]

    def row_text(self, workload: Workload) -> tuple[str, ...]:
        return tuple(text_on(axis, workload) for axis in self.row_axes)

    @property
    def row_titles(self) -> tuple[str, ...]:
        return tuple(axis.title for axis in self.row_axes)


# Limits for the number of places in a table with several columns of values. The greater of two numbers applies: the
# first limit, and the second limit times the number of workloads. If a table had more places, most of them would be
# empty. For example, 3,000 workloads that all differ in block size and queue depth would need 9 million places.
_MOST_PLACES, _MOST_PLACES_OF_A_WORKLOAD = 10_000, 4
_NOTHING_ACROSS = WorkloadAxis(
    key="", title="", text=lambda _: "value", order=lambda _: (0, ""), words=lambda _: "value"
)


def arrange(workloads: Iterable[Workload]) -> Layout:
    """Return an arrangement of workloads as a table. The mixes are the columns, and all other fields are the rows.

    If all mixes are equal and several other fields differ, the last of these fields, such as the queue depth, is used
    for the columns. If most places of a large table would be empty, all fields are used for the rows, and the table has
    one column of values. If streams run together, each stream has its own row, because no field describes all streams.
    """
    several = list(dict.fromkeys(workloads))
    axes = find_axes(several)
    if is_one_combination(several):
        return _list_streams(several)
    column = MIX
    if MIX not in axes and len(axes) > 1:
        column = axes[-1]
    row_axes = tuple(axis for axis in axes if axis is not column) or (BLOCKS,)
    places = len({place_of(work, row_axes) for work in several}) * len({column.order(work) for work in several})
    if places > max(_MOST_PLACES, _MOST_PLACES_OF_A_WORKLOAD * len(several)):
        column, row_axes = _NOTHING_ACROSS, axes
    rows = {place_of(work, row_axes): work for work in reversed(several)}
    columns = {column.order(work): work for work in reversed(several)}
    # Mixes remain in the order in which the run measured them, because the specification defines this order.
    ordered = list(dict.fromkeys(column.order(work) for work in several))
    if column is not MIX:
        ordered.sort()
    by_keys = {(place_of(work, row_axes), column.order(work)): work for work in several}
    return Layout(
        row_axes=row_axes,
        column_axis=column,
        rows=tuple(rows[key] for key in sorted(rows)),
        columns=tuple(columns[key] for key in ordered),
        at=tuple(tuple(by_keys.get((row, column_key)) for column_key in ordered) for row in sorted(rows)),
    )


def _list_streams(streams: Sequence[Workload]) -> Layout:
    """Return an arrangement in one column. Each stream of the combinations has a row, and the rows have the order of
    the streams.
    """
    return Layout(
        row_axes=(STREAM,),
        column_axis=_NOTHING_ACROSS,
        rows=tuple(streams),
        columns=tuple(streams[:1]),
        at=tuple((stream,) for stream in streams),
    )


def shorten_names(names: Iterable[str], most: int) -> dict[str, str]:
    """Return the names of curves, shortened to about ``most`` characters. The full name is the key.

    Both ends of a long name are kept. If shortened names would be equal, a number is added. Each point of a curve
    contains the name, so long names would enlarge the page.
    """
    called: dict[str, str] = {}
    given: set[str] = set()
    for number, name in enumerate(names, start=1):
        short = name
        if len(name) > most:
            short = f"{name[: most // 2]}\N{HORIZONTAL ELLIPSIS}{name[-(most // 2) :]}"
        called[name] = f"{short} ({number})" if short in given else short
        given.add(called[name])
    return called


MARKABLE = (LATENCY_MEAN, LATENCY_MIN, *PERCENTILES, LATENCY_MAX)
"""Quantities that a histogram of response times can mark."""
