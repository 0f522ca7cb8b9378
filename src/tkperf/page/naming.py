"""What workloads, axes and quantities are called on a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tkperf.analysis.layout import ACCESS, BLOCKS, MIX, Axis, find_axes, name_within
from tkperf.model.quantity import Quantity
from tkperf.model.workload import Workload

_NOT_IN_A_LINK = re.compile(r"[^a-z0-9.]+")


def capitalise(text: str) -> str:
    """With a capital where it begins with a word: ``p99 latency`` stays."""
    first = text.split(" ", maxsplit=1)[0].rstrip(",")
    return text[:1].upper() + text[1:] if first.isalpha() else text


def list_words(words: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def describe_axes(titles: Iterable[str]) -> str:
    """``block size and R/W mix`` of axes by their titles."""
    words = []
    for title in titles:
        word = title.split(" (")[0].replace(" %", " mix")
        words.append(word[0].lower() + word[1:] if word[1:2].islower() else word)
    return list_words(words)


def describe_curves(axes: Sequence[Axis]) -> str:
    """``, one curve for each R/W mix``: what tells a chart's curves apart; nothing of a single curve."""
    return f", one curve for each {describe_axes(axis.title for axis in axes)}" if axes else ""


def describe_together(quantities: Sequence[Quantity]) -> str:
    """What an axis of several quantities is: ``Latency (µs)``."""
    if len(quantities) == 1:
        return quantities[0].title
    kinds = {(quantity.label.split(" ")[-1], quantity.unit) for quantity in quantities}
    return ", ".join(f"{capitalise(kind)} ({unit})" for kind, unit in sorted(kinds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How the curves or bars of a chart are told apart: by the axes of what is in it."""

    axes: tuple[Axis, ...]

    @property
    def title(self) -> str:
        """Of a legend or an axis."""
        if len(self.axes) == 1:
            return self.axes[0].title
        if not self._has_both:
            return ", ".join(axis.title for axis in self.axes)
        titles = [axis.title for axis in self.axes if axis not in (MIX, BLOCKS)]
        # In the order in which they stand in a name.
        return ", ".join(("R/W %, block size", *titles))

    @property
    def _has_both(self) -> bool:
        """Whether names say mix and block size; what does not differ between curves is not told."""
        return {MIX, BLOCKS} <= set(self.axes)

    def of(self, workload: Workload) -> str:
        if len(self.axes) == 1:
            return self.axes[0].text(workload)
        if not self._has_both:
            return " ".join(axis.words(workload) for axis in self.axes)
        return name_within(workload, self.axes)

    def words(self, workload: Workload) -> str:
        """The name where no title stands above it: ``4 KiB`` for ``4``."""
        if len(self.axes) != 1:
            return self.of(workload)
        (axis,) = self.axes
        sizes = axis is BLOCKS and not workload.block_mix
        return f"{axis.text(workload)} KiB" if sizes else axis.words(workload)


def find_naming(workloads: Iterable[Workload]) -> Naming:
    """Names that tell these workloads apart; a single one is called by its block size."""
    return Naming(axes=find_axes(workloads) or (BLOCKS,))


def describe_load(workload: Workload, axes: Iterable[Axis]) -> str:
    """``RND 4k read``, and what tells it from others with the same blocks and mix."""
    mix = workload.read_percent
    direction = {100: "read", 0: "write"}.get(mix, MIX.words(workload))
    others = (axis.words(workload) for axis in axes if axis not in (ACCESS, MIX, BLOCKS))
    return " ".join((ACCESS.text(workload), workload.blocks_name, direction, *others))


def describe_direction(workloads: Iterable[Workload], read_percent: int) -> str:
    """``SEQ reads``: those of one mix; without their order of addresses if it differs."""
    of_mix = [workload for workload in workloads if workload.read_percent == read_percent]
    orders = {ACCESS.text(workload) for workload in of_mix}
    direction = {100: "reads", 0: "writes"}.get(read_percent, MIX.words(of_mix[0]))
    return f"{orders.pop()} {direction}" if len(orders) == 1 else direction


def name_links(key: str, workloads: Iterable[Workload]) -> dict[Workload, str]:
    """A key for each workload of a section that can stand in an address.

    Mix and block size come first, as in all reports so far; then what else tells them apart.
    """
    several = list(dict.fromkeys(workloads))
    axes = [
        axis
        for axis in find_axes(several)
        if axis is not MIX
        and (axis is not BLOCKS or any(workload.block_mix for workload in several))
    ]
    links: dict[Workload, str] = {}
    for workload in several:
        words = (axis.words(workload).lower() for axis in axes)
        slug = (_NOT_IN_A_LINK.sub("-", word).strip("-") for word in words)
        whole = "-".join((key, f"{workload.read_percent}-{workload.block_size_bytes}", *slug))
        again = sum(link == whole or link.startswith(f"{whole}--") for link in links.values())
        links[workload] = f"{whole}--{again + 1}" if again else whole
    return links


def address(link: str, part: str = "", mark: str = "") -> str:
    """What a click opens, as it stands in an address: a cell, of that a part, of its latencies one.

    ``link`` is of ``name_links``, ``part`` a number or the key of a ``ScopeView``, ``mark`` the short name
    of a quantity; empty is what the section's figures are of, and no mark. ``iops0-0-4096``, ``lat0-0-4096//p99.9``,
    ``writesat0-0-4096/12/max``.
    """
    return "/".join((link, part, mark)).rstrip("/") if link else ""
