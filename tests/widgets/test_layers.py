"""The layout of boxes: nothing overlaps, edges run down."""

from hypothesis import given
from hypothesis import strategies as st

from flowbook.widgets.layers import lay_out

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
    layout = lay_out(sizes, sorted(edges))
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
def test_edges_follow_the_order_of_boxes(graph: tuple) -> None:
    sizes, edges = graph
    layout = lay_out(sizes, sorted(edges))
    assert set(layout.routes) == edges
    for (source, target), route in layout.routes.items():
        assert route[0] == layout.centres[source]
        assert route[-1] == layout.centres[target]
        heights = [y for _, y in route]
        assert heights == sorted(heights, reverse=source > target)
        assert len(set(heights)) == len(heights)


@given(graphs)
def test_equal_graphs_lie_alike(graph: tuple) -> None:
    sizes, edges = graph
    assert lay_out(sizes, sorted(edges)) == lay_out(sizes, sorted(edges))


def test_a_diamond_is_symmetric() -> None:
    layout = lay_out([(50.0, 20.0)] * 4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    (x0, _), (x1, y1), (x2, y2), (x3, _) = layout.centres
    assert y1 == y2
    assert abs(x0 - x3) < 1e-6
    assert abs((x1 + x2) / 2 - x0) < 1e-6


def test_wide_layers_are_split() -> None:
    layout = lay_out([(100.0, 20.0)] * 40, [], max_width=500)
    assert layout.width <= 500
