"""Places boxes in layers so that edges run downward: a small Sugiyama layout, deterministic.

Pure: sizes and edges in, coordinates out. Where edges go round in a circle some run upward; they
are laid out as if they ran down. An edge that skips layers bends around the boxes between. Boxes
without edges stand in rows below the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from flowbook.widgets.graphs.directions import downward_ranks

LAYER_GAP = 46.0
BOX_GAP = 22.0
_BEND = 4.0  # The room that an edge takes where it passes a layer,
_BEND_GAP = 12.0  # and beside it.
_LOOSE_GAP = 20.0  # Between rows of boxes without edges.
_LOOSE_WIDTH = 560.0  # How wide these rows may be, at least.
_SWEEPS = 12


@dataclass
class Layout:
    """Where boxes and edges lie.

    Attributes:
        centres: the middle of each box, by its number.
        routes: for each edge the points that it passes, from its source box to its target.
        width: the whole width.
        height: the whole height.
        loose_top: where the boxes without edges begin, if there are others above them.
    """

    centres: list[tuple[float, float]]
    routes: dict[tuple[int, int], list[tuple[float, float]]]
    width: float
    height: float
    loose_top: float | None = None


def lay_out(
    sizes: list[tuple[float, float]],
    edges: Mapping[tuple[int, int], float],
    max_width: float = 780.0,
) -> Layout:
    """Place boxes so that edges between them run down where they can.

    Args:
        sizes: width and height of each box.
        edges: pairs of numbers of boxes, no two equal, none from a box to itself; and how much it
            matters that each runs down.
        max_width: layers wider than this are split, where they hold boxes that can be apart.
    """
    ranks = downward_ranks(len(sizes), edges)
    down = [edge if ranks[edge[0]] < ranks[edge[1]] else edge[::-1] for edge in edges]
    joined = {box for edge in edges for box in edge}
    layers = _split_wide(_layers(ranks, joined, down), sizes, max_width)
    level = {box: depth for depth, layer in enumerate(layers) for box in layer}
    widths = [width for width, _ in sizes]
    chains: list[list[int]] = []
    links: list[tuple[int, int]] = []
    for source, target in down:
        chain = [source]
        for depth in range(level[source] + 1, level[target]):
            bend = len(widths)
            widths.append(_BEND)
            layers[depth].append(bend)
            chain.append(bend)
        chain.append(target)
        chains.append(chain)
        links.extend(pairwise(chain))
    above, below = _neighbours(len(widths), links)
    layers = _order(layers, above, below)
    x = _coordinates(layers, widths, above, below, len(sizes))
    _draw_in(layers, widths, x, max_width)
    y, height = _rows(layers, sizes)
    placed = [n for layer in layers for n in layer]
    left = min((x[n] - widths[n] / 2 for n in placed), default=0.0)
    width = max((x[n] + widths[n] / 2 for n in placed), default=left) - left
    loose = [box for box in range(len(sizes)) if box not in joined]
    rows = _split_wide([loose], sizes, min(max(width, _LOOSE_WIDTH), max_width)) if loose else []
    overall = max([width, *(_row_width(row, sizes) for row in rows)])
    left -= (overall - width) / 2
    at = {n: (x[n] - left, y[depth]) for depth, layer in enumerate(layers) for n in layer}
    routes = {}
    for edge, (source, _), chain in zip(edges, down, chains, strict=True):
        points = [at[n] for n in chain]
        routes[edge] = points if edge[0] == source else points[::-1]
    loose_top = height + LAYER_GAP if joined and loose else None
    if rows:
        height = _place_rows(rows, sizes, overall / 2, loose_top or 0.0, at)
    return Layout([at[n] for n in range(len(sizes))], routes, overall, height, loose_top)


def _place_rows(
    rows: list[list[int]],
    sizes: list[tuple[float, float]],
    middle: float,
    top: float,
    at: dict[int, tuple[float, float]],
) -> float:
    """Place rows of boxes below each other; return where the last one ends."""
    for row in rows:
        tallest = max(sizes[box][1] for box in row)
        x = middle - _row_width(row, sizes) / 2
        for box in row:
            at[box] = x + sizes[box][0] / 2, top + tallest / 2
            x += sizes[box][0] + BOX_GAP
        top += tallest + _LOOSE_GAP
    return top - _LOOSE_GAP


def _row_width(row: list[int], sizes: list[tuple[float, float]]) -> float:
    return sum(sizes[box][0] for box in row) + BOX_GAP * (len(row) - 1)


def _layers(ranks: list[int], joined: set[int], down: list[tuple[int, int]]) -> list[list[int]]:
    """Each box as far down as the longest way to it; what nothing feeds just above its use."""
    depth = [0] * len(ranks)
    for source, target in sorted(down, key=lambda edge: ranks[edge[0]]):
        depth[target] = max(depth[target], depth[source] + 1)
    fed = {target for _, target in down}
    for box in sorted(joined - fed):
        depth[box] = min(depth[target] for source, target in down if source == box) - 1
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)] if joined else []
    for box in sorted(joined):
        layers[depth[box]].append(box)
    return layers


def _split_wide(
    layers: list[list[int]], sizes: list[tuple[float, float]], max_width: float
) -> list[list[int]]:
    result = []
    for layer in layers:
        row: list[int] = []
        used = 0.0
        for box in layer:
            if row and used + sizes[box][0] > max_width:
                result.append(row)
                row, used = [], 0.0
            row.append(box)
            used += sizes[box][0] + BOX_GAP
        result.append(row)
    return result


def _neighbours(
    count: int, links: list[tuple[int, int]]
) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for source, target in links:
        below[source].append(target)
        above[target].append(source)
    return above, below


def _order(
    layers: list[list[int]], above: list[list[int]], below: list[list[int]]
) -> list[list[int]]:
    """Reduce crossings by sorting layers by the mean position of what they connect to."""
    best, fewest = layers, _crossings(layers, below)
    current = layers
    for sweep in range(_SWEEPS):
        upward = sweep % 2 == 1
        beside = below if upward else above
        current = [list(layer) for layer in current]
        position = {n: i for layer in current for i, n in enumerate(layer)}
        for layer in reversed(current) if upward else current:
            mean = {
                n: sum(position[m] for m in beside[n]) / len(beside[n])
                if beside[n]
                else float(position[n])
                for n in layer
            }
            layer.sort(key=lambda n: (mean[n], position[n]))
            position.update((n, i) for i, n in enumerate(layer))
        crossings = _crossings(current, below)
        if crossings < fewest:
            best, fewest = current, crossings
    return best


def _crossings(layers: list[list[int]], below: list[list[int]]) -> int:
    total = 0
    for upper, lower in pairwise(layers):
        position = {n: i for i, n in enumerate(lower)}
        ends = [position[m] for n in upper for m in sorted(below[n], key=position.__getitem__)]
        total += sum(
            1 for i, first in enumerate(ends) for second in ends[i + 1 :] if second < first
        )
    return total


def _coordinates(
    layers: list[list[int]],
    widths: list[float],
    above: list[list[int]],
    below: list[list[int]],
    boxes: int,
) -> list[float]:
    """Draw everything towards what it connects to, as far as the room between allows."""
    x = [0.0] * len(widths)
    for layer in layers:
        _spread(layer, [0.0] * len(layer), widths, x)
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = []
            for n in layer:
                beside = (
                    above[n] + below[n]
                    if sweep > _SWEEPS // 2
                    else (above[n] if sweep % 2 == 0 else below[n])
                )
                # Bends weigh more, so that long edges are straight.
                weights = [3.0 if m >= boxes and n >= boxes else 1.0 for m in beside]
                total = sum(weights)
                mean = sum(w * x[m] for w, m in zip(weights, beside, strict=True))
                wanted.append(mean / total if total else x[n])
            _spread(layer, wanted, widths, x)
    return x


def _draw_in(
    layers: list[list[int]], widths: list[float], x: list[float], max_width: float
) -> None:
    """Move layers that have drifted apart to within the width, where they are not wider."""
    ends = [
        (x[layer[0]] - widths[layer[0]] / 2, x[layer[-1]] + widths[layer[-1]] / 2)
        for layer in layers
    ]
    if not ends or max(right for _, right in ends) - min(left for left, _ in ends) <= max_width:
        return
    middle = sum(left + right for left, right in ends) / len(ends) / 2
    for layer, (left, right) in zip(layers, ends, strict=True):
        spare = max(max_width - (right - left), 0.0) / 2
        centre = (left + right) / 2
        shift = min(max(centre, middle - spare), middle + spare) - centre
        for n in layer:
            x[n] += shift


def _spread(layer: list[int], wanted: list[float], widths: list[float], x: list[float]) -> None:
    """Place a layer's nodes as near to where they want to be as their order and widths allow.

    The least squares solution: nodes that would overlap form a cluster, which stands where its
    members want it on average.
    """
    offsets, offset = [], 0.0
    for i, n in enumerate(layer):
        if i:
            before = widths[layer[i - 1]]
            gap = _BEND_GAP if _BEND in (before, widths[n]) else BOX_GAP
            offset += (before + widths[n]) / 2 + gap
        offsets.append(offset)
    clusters: list[list[float]] = []  # sum of wishes, members
    for wish, shift in zip(wanted, offsets, strict=True):
        clusters.append([wish - shift, 1])
        while len(clusters) > 1 and clusters[-2][0] / clusters[-2][1] > (
            clusters[-1][0] / clusters[-1][1]
        ):
            last = clusters.pop()
            clusters[-1][0] += last[0]
            clusters[-1][1] += last[1]
    i = 0
    for total, members in clusters:
        for _ in range(int(members)):
            x[layer[i]] = total / members + offsets[i]
            i += 1


def _rows(layers: list[list[int]], sizes: list[tuple[float, float]]) -> tuple[list[float], float]:
    middle, top = [], 0.0
    for layer in layers:
        tallest = max((sizes[n][1] for n in layer if n < len(sizes)), default=0.0)
        middle.append(top + tallest / 2)
        top += tallest + LAYER_GAP
    return middle, max(top - LAYER_GAP, 0.0)
