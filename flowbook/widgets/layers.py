"""Places boxes in layers so that edges run downward: a small Sugiyama layout, deterministic.

Pure: sizes and edges in, coordinates out. Edges against the order of the boxes run upward; they
are laid out as if they ran down. An edge that skips layers bends around the boxes between.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

LAYER_GAP = 46.0
BOX_GAP = 22.0
_BEND = 4.0  # The room that an edge takes where it passes a layer,
_BEND_GAP = 12.0  # and between two edges.
_SWEEPS = 12


@dataclass
class Layout:
    """Where boxes and edges lie.

    Attributes:
        centres: the middle of each box, by its number.
        routes: for each edge the points that it passes, from its source box to its target.
        width: the whole width.
        height: the whole height.
    """

    centres: list[tuple[float, float]]
    routes: dict[tuple[int, int], list[tuple[float, float]]]
    width: float
    height: float


def lay_out(
    sizes: list[tuple[float, float]], edges: list[tuple[int, int]], max_width: float = 1100.0
) -> Layout:
    """Place boxes so that edges between them run down where they can.

    Args:
        sizes: width and height of each box.
        edges: pairs of numbers of boxes, no two equal, none from a box to itself.
        max_width: layers wider than this are split, where they hold boxes that can be apart.
    """
    down = [(min(edge), max(edge)) for edge in edges]
    layers = _split_wide(_layers(len(sizes), down), sizes, max_width)
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
    y, height = _rows(layers, sizes)
    left = min((x[n] - widths[n] / 2 for n in range(len(widths))), default=0.0)
    right = max((x[n] + widths[n] / 2 for n in range(len(widths))), default=0.0)
    at = {n: (x[n] - left, y[depth]) for depth, layer in enumerate(layers) for n in layer}
    routes = {}
    for edge, (source, _), chain in zip(edges, down, chains, strict=True):
        points = [at[n] for n in chain]
        routes[edge] = points if edge[0] == source else points[::-1]
    return Layout([at[n] for n in range(len(sizes))], routes, right - left, height)


def _layers(count: int, down: list[tuple[int, int]]) -> list[list[int]]:
    depth = [0] * count
    for source, target in sorted(down):
        depth[target] = max(depth[target], depth[source] + 1)
    fed = {target for _, target in down}
    for box in range(count):
        # What nothing feeds stands just above its first use.
        uses = [depth[target] for source, target in down if source == box]
        if box not in fed and uses:
            depth[box] = min(uses) - 1
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for box in range(count):
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


def _spread(layer: list[int], wanted: list[float], widths: list[float], x: list[float]) -> None:
    """Place a layer's nodes as near to where they want to be as their order and widths allow.

    The least squares solution: nodes that would overlap form a cluster, which stands where its
    members want it on average.
    """
    offsets, offset = [], 0.0
    for i, n in enumerate(layer):
        if i:
            before = widths[layer[i - 1]]
            gap = _BEND_GAP if before == widths[n] == _BEND else BOX_GAP
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
