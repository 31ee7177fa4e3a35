"""Which edges run down."""

from hypothesis import given
from hypothesis import strategies as st

from flowbook.widgets.graphs.directions import downward_ranks

weights = st.dictionaries(
    st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda e: e[0] != e[1]),
    st.floats(0.5, 20),
    max_size=40,
)


def upward(ranks: list[int], edges: dict) -> set:
    return {edge for edge in edges if ranks[edge[0]] > ranks[edge[1]]}


@given(weights)
def test_ranks_are_an_order_and_most_edges_run_down(edges: dict) -> None:
    ranks = downward_ranks(12, edges)
    assert sorted(ranks) == list(range(12))
    assert ranks == downward_ranks(12, edges)
    up = upward(ranks, edges)
    # What runs up closes a circle: nothing else has a reason to.
    down = edges.keys() - up
    for source, target in up:
        reached, stack = {target}, [target]
        while stack:
            at = stack.pop()
            for a, b in edges:
                if a == at and b not in reached:
                    reached.add(b)
                    stack.append(b)
        assert source in reached
    assert len(down) >= len(up) or len(edges) < 12


def test_the_order_of_construction_does_not_matter() -> None:
    # A cell run again builds its blocks last, though they feed others.
    assert downward_ranks(4, {(3, 0): 1.0, (0, 1): 1.0, (3, 1): 1.0}) == [2, 3, 0, 1]


def test_a_circle_is_cut_where_it_is_thin() -> None:
    edges = {(0, 1): 5.0, (1, 2): 5.0, (2, 0): 0.5}
    assert upward(downward_ranks(3, edges), edges) == {(2, 0)}
    edges = {(0, 1): 0.5, (1, 2): 5.0, (2, 0): 5.0}
    assert upward(downward_ranks(3, edges), edges) == {(0, 1)}


def test_a_circle_turns_no_edge_beside_it() -> None:
    edges = {(0, 1): 1.0, (1, 0): 1.0, (1, 2): 1.0, (2, 3): 9.0, (3, 2): 1.0, (3, 4): 1.0}
    assert upward(downward_ranks(5, edges), edges) == {(1, 0), (3, 2)}
