"""Collapsing a graph to blocks."""

import numpy as np
import pytest

import flowbook as fb
from flowbook.widgets.graphs.scope_blocks import collapse
from flowbook.widgets.graphs.setting_aside import aside_on_top


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


def test_an_operation_and_the_constants_of_its_arguments_are_one_block() -> None:
    mine = fb.OpDef(
        "ConstantOfBlocks",
        "-> y: float32",
        attributes={"value": fb.REQUIRED},
        infer=lambda value: fb.Shape([]),
        kernel=lambda xp, value: value,
        is_constant=True,
    )
    for name, given in (("plain", fb.constant), ("users", lambda value: mine(value=value))):
        with fb.name_scope(name) as scope:
            one = given(np.float32(1.0))
        fb.add(fb.placeholder(fb.float32, [2]), one, name=scope)
    kinds = {b.name: b.kind for b in collapse(fb.get_default_graph()).blocks}
    assert kinds["plain"] == kinds["users"] == "operation"


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
    x = None
    for i in range(count):
        with fb.name_scope(f"s{i}"):
            x = fb.identity(fb.constant(1.0) if x is None else fb.identity(x))
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


def test_scopes_of_one_size_but_other_operations_stay_apart() -> None:
    x = fb.placeholder(fb.float32, [4], name="x")
    for function in (fb.tanh, fb.exp, fb.log, fb.abs):
        for i in range(4):
            with fb.name_scope(f"{function.__name__}_{i}"):
                function(x) * 2.0
    found = collapse(fb.get_default_graph())
    assert [b.name for b in found.blocks] == [
        "x",
        "tanh_0 … tanh_3",
        "exp_0 … exp_3",
        "log_0 … log_3",
        "abs_0 … abs_3",
    ]


def test_blocks_of_one_look_and_place_are_one() -> None:
    x = fb.placeholder(fb.float32, [4], name="x")
    made = []
    for i in range(20):
        with fb.name_scope(f"tower_{i}"):
            made.append(fb.tanh(x) * 2.0)
    fb.add_n(made, name="sum")
    found = collapse(fb.get_default_graph())
    assert [(b.name, b.kind, b.detail) for b in found.blocks] == [
        ("x", "input", "Placeholder [4]"),
        ("tower_0 … tower_19", "several", "20 × 3 operations"),
        ("sum", "operation", "AddN [4]"),
    ]
    assert found.edges[1, 2].tensors == 20


def mlp(layers: int) -> None:
    h = fb.placeholder(fb.float32, [None, 8], name="x")
    for i in range(layers):
        W = fb.Variable(fb.random_normal([8, 8]), name=f"W{i}")
        b = fb.Variable(fb.zeros([8]), name=f"b{i}")
        h = fb.nn.relu(h @ W + b)
    fb.train.AdamOptimizer(0.1).minimize(fb.reduce_mean(h))


def test_many_blocks_hold_their_initialisers_and_set_optimizers_aside() -> None:
    mlp(6)
    found = collapse(fb.get_default_graph())
    blocks = {b.name: b for b in found.blocks}
    assert not [name for name in blocks if name.startswith(("zeros", "random"))]
    assert blocks["W3"].kind == "variable"
    assert blocks["W3"].detail == "variable [8, 8], 2 slots"
    assert "fed by" in blocks["gradients"].detail
    assert "fed by" in blocks["Adam"].detail
    aside = {i for i, b in enumerate(found.blocks) if b.name in ("gradients", "Adam")}
    assert not any(aside & set(edge) for edge in found.edges)
    assert sum(b.operations for b in found.blocks) == len(fb.get_default_graph().operations)


def test_what_lies_between_inputs_and_the_loss_stays_whatever_is_beside_it() -> None:
    """Much beside a small model makes its variables and activations look crowded."""
    x = fb.placeholder(fb.float32, [None, 8], name="x")
    W = fb.Variable(fb.random_normal([8, 8]), name="W")
    h = fb.nn.relu(x @ W, name="h")
    for i in range(6):
        fb.abs(h, name=f"read_{i}")
        fb.abs(W, name=f"look_{i}")
    side = x
    for _ in range(40):
        side = fb.tanh(side)
    loss = fb.reduce_mean(h, name="loss")
    fb.train.GradientDescentOptimizer(0.1).minimize(loss)
    found = collapse(fb.get_default_graph())
    names = [block.name for block in found.blocks]
    edges = {(names[source], names[target]) for source, target in found.edges}
    spine = [("x", "MatMul"), ("W", "MatMul"), ("MatMul", "h"), ("h", "loss")]
    assert edges.issuperset(spine)


def test_a_picture_sets_aside_what_the_live_view_does() -> None:
    mlp(6)
    graph = fb.get_default_graph()
    unseen = {
        op.name.partition("/")[0]
        for op in aside_on_top(graph.operations, [op.name for op in graph.operations])
    }
    assert unseen == {"gradients", "Adam"}
    blocks = collapse(graph).blocks
    assert {block.name for block in blocks if "fed by" in block.detail} == unseen


def test_empty_graph() -> None:
    assert collapse(fb.get_default_graph()).blocks == []
