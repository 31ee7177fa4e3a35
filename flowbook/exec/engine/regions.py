"""Regions: parts of a plan that need no waiting inside and run as straight-line code.

Two nodes share a region only if they have the same asynchronous ancestors (asynchronous kernels,
late feeds). So a region waits for nothing that one of its members does not need: a path between
two members leads only through nodes with the same ancestors, which are members themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowbook.exec.engine.units import Unit


def find_regions(units: Sequence[Unit], order: Sequence[int]) -> list[list[int]]:
    """Group the units that need no waiting; those that wait stay alone and are left out.

    Args:
        units: the units of a plan.
        order: all their indices, in a topological order.

    Returns:
        The indices of each group, in that order.
    """
    producer: dict[int, int] = {}
    ancestors: dict[int, int] = {}
    regions: dict[int, list[int]] = {}
    for index in order:
        unit = units[index]
        found = 0
        sources = [producer[v] for v in unit.inputs if v in producer]
        for source in (*sources, *unit.after):
            found |= ancestors[source] | (1 << source if units[source].waits else 0)
        ancestors[index] = found
        for value in unit.outputs:
            producer[value] = index
        if not unit.waits:
            regions.setdefault(found, []).append(index)
    return list(regions.values())
