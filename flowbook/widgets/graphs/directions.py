"""Which edges of a picture run down: an order of its boxes in which as few as can be run up.

Where nothing goes round in a circle, that is all of them. Pure and deterministic.
"""

from __future__ import annotations

from collections.abc import Mapping

Edge = tuple[int, int]


def downward_ranks(count: int, weights: Mapping[Edge, float]) -> list[int]:
    """The place of each box in an order in which edges run from first to last.

    Circles are cut where little runs up: at boxes that send much more than they take. Boxes that
    could stand anywhere keep the order of their numbers.

    Args:
        count: how many boxes.
        weights: how much each edge counts, by its source and target.

    Source: the greedy choice is that of Eades, Lin and Smyth, "A fast and effective heuristic for
    the feedback arc set problem", 1993.
    """
    left = set(range(count))
    upper: list[int] = []
    lower: list[int] = []
    while left:
        between = [(edge, w) for edge, w in weights.items() if edge[0] in left and edge[1] in left]
        fed = {target for (_, target), _ in between}
        feeding = {source for (source, _), _ in between}
        if sources := left - fed:
            chosen = min(sources)
            upper.append(chosen)
        elif sinks := left - feeding:
            chosen = max(sinks)
            lower.append(chosen)
        else:
            surplus = dict.fromkeys(_first_circle(left, [edge for edge, _ in between]), 0.0)
            for (source, target), weight in between:
                if source in surplus and target in surplus:
                    surplus[source] += weight
                    surplus[target] -= weight
            chosen = min(surplus, key=lambda box: (-surplus[box], box))
            upper.append(chosen)
        left.remove(chosen)
    ranks = [0] * count
    for rank, box in enumerate([*upper, *reversed(lower)]):
        ranks[box] = rank
    return ranks


def _first_circle(left: set[int], edges: list[Edge]) -> list[int]:
    """Boxes that all reach each other, and that nothing else reaches."""
    after: dict[int, list[int]] = {box: [] for box in left}
    for source, target in edges:
        after[source].append(target)
    reached = {box: _reached(box, after) for box in left}
    for box in sorted(left):
        before = [other for other in sorted(left) if box in reached[other]]
        if all(other in reached[box] for other in before):
            return before
    raise AssertionError("some box is reached only from where it reaches")


def _reached(start: int, after: dict[int, list[int]]) -> set[int]:
    found = {start}
    stack = [start]
    while stack:
        for box in after[stack.pop()]:
            if box not in found:
                found.add(box)
                stack.append(box)
    return found
