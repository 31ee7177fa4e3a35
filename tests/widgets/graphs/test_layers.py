"""The layout of boxes: nothing overlaps, edges run down."""

import random

from hypothesis import given
from hypothesis import strategies as st

from flowbook.widgets.graphs.layers import lay_out

graphs = st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        st.lists(st.tuples(st.floats(10, 300), st.floats(10, 60)), min_size=n, max_size=n),
        st.sets(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] != e[1]),
            max_size=60,
        ),
    )
)


@given(graphs)
def test_boxes_lie_apart_and_inside(graph: tuple) -> None:
    sizes, edges = graph
    layout = lay_out(sizes, dict.fromkeys(sorted(edges), 1.0))
    boxes = [
        (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        for (x, y), (w, h) in zip(layout.centres, sizes, strict=True)
    ]
    for i, a in enumerate(boxes):
        assert a[0] >= -1e-6
        assert a[1] >= -1e-6
        assert a[2] <= layout.width + 1e-6
        assert a[3] <= layout.height + 1e-6
        for b in boxes[:i]:
            apart = a[2] <= b[0] + 1e-6 or b[2] <= a[0] + 1e-6
            assert apart or a[3] <= b[1] + 1e-6 or b[3] <= a[1] + 1e-6


@given(graphs)
def test_edges_pass_every_layer_once(graph: tuple) -> None:
    sizes, edges = graph
    layout = lay_out(sizes, dict.fromkeys(sorted(edges), 1.0))
    assert set(layout.routes) == edges
    for (source, target), route in layout.routes.items():
        assert route[0] == layout.centres[source]
        assert route[-1] == layout.centres[target]
        heights = [y for _, y in route]
        assert heights in (sorted(heights), sorted(heights, reverse=True))
        assert len(set(heights)) == len(heights)


@given(graphs, st.randoms(use_true_random=False))
def test_without_circles_all_edges_run_down(graph: tuple, shuffle: random.Random) -> None:
    sizes, edges = graph
    place = list(range(len(sizes)))
    shuffle.shuffle(place)
    acyclic = {(place[min(e)], place[max(e)]): 1.0 for e in sorted(edges)}
    for route in lay_out(sizes, acyclic).routes.values():
        assert [y for _, y in route] == sorted(y for _, y in route)


@given(graphs)
def test_equal_graphs_lie_alike(graph: tuple) -> None:
    sizes, edges = graph
    weights = dict.fromkeys(sorted(edges), 1.0)
    assert lay_out(sizes, weights) == lay_out(sizes, weights)


def test_a_diamond_is_symmetric() -> None:
    layout = lay_out([(50.0, 20.0)] * 4, dict.fromkeys([(0, 1), (0, 2), (1, 3), (2, 3)], 1.0))
    (x0, _), (x1, y1), (x2, y2), (x3, _) = layout.centres
    assert y1 == y2
    assert abs(x0 - x3) < 1e-6
    assert abs((x1 + x2) / 2 - x0) < 1e-6


def test_wide_layers_are_split() -> None:
    layout = lay_out([(100.0, 20.0)] * 40, {}, max_width=500)
    assert layout.width <= 500


def test_boxes_without_edges_stand_below() -> None:
    layout = lay_out([(50.0, 20.0)] * 4, {(1, 3): 1.0})
    assert layout.loose_top is not None
    heights = [y for _, y in layout.centres]
    assert heights[1] < heights[3] < layout.loose_top < heights[0] == heights[2]
