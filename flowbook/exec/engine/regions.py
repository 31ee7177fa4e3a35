"""Regions: parts of a plan that need no waiting inside and run as straight-line code.

Two items share a region only if they have the same asynchronous ancestors (asynchronous kernels,
late feeds). So a region waits for nothing that one of its members does not need: a path between
two members leads only through items with the same ancestors, which are members themselves.

Where values are routed to branches and loops, a region is one unit if nothing that goes into it may
be dead. Otherwise what runs on the same sides of the same predicates stays together in it, and what
routes values between these stays alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from typing import NamedTuple

from flowbook.exec.engine.units import Unit
from flowbook.exec.plan.outline import Layout


class Place(NamedTuple):
    """Something that runs, as far as regions are concerned.

    Attributes:
        before: what comes before it, by its place.
        waits: whether what needs it may have to wait for something outside the step's thread.
    """

    before: Set[int]
    waits: bool


def places_of(units: Sequence[Unit], order: Sequence[int]) -> list[Place]:
    """Units in an order in which they can run, where nothing is routed."""
    place_of = {index: place for place, index in enumerate(order)}
    producer = {value: place_of[i] for i in order for value in units[i].outputs}
    places = []
    for unit in [units[index] for index in order]:
        before = {producer[v] for v in unit.inputs if v in producer}
        before.update([place_of[i] for i in (*unit.after, *unit.behind)])
        places.append(Place(before, unit.waits))
    return places


def find_regions(places: Sequence[Place]) -> list[list[int]]:
    """Group what needs no waiting; what waits stays alone and is left out.

    Args:
        places: what runs, each after what comes before it.

    Returns:
        The members of each group, in that order.
    """
    ancestors: list[int] = []
    regions: dict[int, list[int]] = {}
    for index, (before, waits) in enumerate(places):
        found = 0
        for source in before:
            found |= ancestors[source] | (1 << source if places[source].waits else 0)
        ancestors.append(found)
        if not waits:
            regions.setdefault(found, []).append(index)
    return list(regions.values())


def split_region(layout: Layout, region: Sequence[int], alone: Collection[int]) -> list[list[int]]:
    """Take a region apart into groups of which each runs as a whole or not at all.

    A path between two members of a group leads through members only: on any other the guard
    changes, or something that stays alone is passed, and these are counted.

    Args:
        layout: of the frame.
        region: items, each after those before it.
        alone: those of them that stay alone, and are left out.
    """
    depths: dict[int, int] = {}
    groups: dict[object, list[int]] = {}
    for place in region:
        item = layout.items[place]
        depth = 0
        for other in item.before:
            if other in depths:
                differs = other in alone or layout.items[other].guard != item.guard
                depth = max(depth, depths[other] + differs)
        depths[place] = depth
        if place not in alone:
            groups.setdefault((item.guard, depth), []).append(place)
    return list(groups.values())
