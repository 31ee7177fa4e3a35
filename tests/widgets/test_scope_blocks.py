"""Collapsing a graph to blocks."""

import pytest

import flowbook as fb
from flowbook.widgets.scope_blocks import collapse


def test_scopes_variables_inputs_and_operations() -> None:
    x = fb.placeholder(fb.float32, [None, 2], name="x")
    W = fb.Variable([1.0, 2.0], name="W")
    with fb.name_scope("layer"):
        y = fb.reduce_sum(x * W)
    fb.identity(y, name="out")
    blocks = {b.name: b for b in collapse(fb.get_default_graph()).blocks}
    assert [(b.name, b.kind) for b in blocks.values()] == [
        ("x", "input"),
        ("W", "variable"),
        ("layer", "scope"),
        ("out", "operation"),
    ]
    assert blocks["x"].detail == "Placeholder [?, 2]"
    assert blocks["W"].detail == "variable [2]"
    assert blocks["layer"].detail == f"{blocks['layer'].operations} operations"
    assert blocks["out"].detail == "Identity []"


def test_edges_count_tensors_once_and_controls_apart() -> None:
    with fb.name_scope("a"):
        p, q = fb.constant([1.0]), fb.constant([2.0])
    with fb.name_scope("b"), fb.control_dependencies([p]):
        fb.identity(p)
        fb.identity(p)
    with fb.name_scope("c"):
        _ = p + q
    edges = collapse(fb.get_default_graph()).edges
    assert set(edges) == {(0, 1), (0, 2)}
    assert (edges[0, 1].tensors, edges[0, 1].controls, edges[0, 1].shape) == (1, 2, "[1]")
    assert (edges[0, 2].tensors, edges[0, 2].shape) == (2, "")


def test_long_chains_are_one_block() -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    for _ in range(50):
        x = fb.identity(x)
    assert [b.name for b in collapse(fb.get_default_graph()).blocks] == [
        "x",
        "Identity … Identity_49",
    ]


@pytest.mark.parametrize("count", [39, 40, 41, 500])
def test_the_smallest_are_summarised(count: int) -> None:
    for i in range(count):
        with fb.name_scope(f"s{i}"):
            fb.constant(1.0)
            if i % 100 == 7:
                fb.constant(2.0)
    collapsed = collapse(fb.get_default_graph())
    assert len(collapsed.blocks) == min(count, 40)
    assert sum(b.operations for b in collapsed.blocks) == len(fb.get_default_graph().operations)
    if count > 40:
        assert collapsed.blocks[-1].name == f"and {count - 39} more"
        assert "s7" in [b.name for b in collapsed.blocks]
        if count == 500:
            assert "s407" in [b.name for b in collapsed.blocks]


def test_empty_graph() -> None:
    assert collapse(fb.get_default_graph()).blocks == []
