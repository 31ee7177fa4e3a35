"""Branches and loops as ONNX's If, Loop and Scan, both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import flowbook as fb
from tests.exec.engine.code.test_lowering import build, programs, pure, starts
from tests.need import requires

reference = pytest.importorskip("onnx.reference")
onnx = pytest.importorskip("onnx")
pytestmark = [requires(module="onnx"), requires(module="onnxruntime")]

from onnx import TensorProto, helper  # noqa: E402

from tests.onnx.exchange import exchanged, types  # noqa: E402
from tests.onnx.models import model, value  # noqa: E402


@pytest.fixture(autouse=True)
def graph() -> Any:
    with fb.Graph().as_default() as graph:
        yield graph


def number(name: str = "x") -> fb.Tensor:
    return fb.placeholder(fb.float32, [], name=name)


# Written


@settings(max_examples=60, deadline=None)
@given(programs(plain=pure), starts, starts)
def test_random_programs_go_there_and_back(program: Any, start: Any, other: Any) -> None:
    with fb.Graph().as_default():
        feeds = [fb.placeholder(fb.int32, []) for _ in start]
        values = [fb.identity(v) for v in build(program, feeds, None)]
        exchanged(values, *[dict(zip(feeds, s, strict=True)) for s in (start, other)])


def test_both_sides_of_a_branch_and_all_that_it_gives() -> None:
    x, y = number(), number("y")
    chosen = fb.cond(x > 0, lambda: (fb.exp(x) + y, y), lambda: (x, fb.zeros([])))
    made = exchanged(chosen, {x: 1.0, y: 2.0}, {x: -1.0, y: 2.0})
    assert types(made.graph).count("If") == 1


def test_a_case_of_several() -> None:
    x = number()
    found = fb.case([(x > 10.0, lambda: x), (x > 5.0, lambda: x * 2.0)], default=lambda: x * 3.0)
    exchanged([found], {x: 11.0}, {x: 6.0}, {x: 0.0})


def test_the_derivative_of_a_branch() -> None:
    x = number()
    y = fb.cond(x > 0, lambda: fb.exp(x) * x, lambda: x * 3.0)
    # Its Merge takes what the branch's gives, and has the same predicate.
    exchanged([y, *fb.gradients(y * y, [x])], {x: 1.0}, {x: -1.0})


def test_a_loop_sees_what_is_around_it_and_may_not_begin() -> None:
    x, limit = number(), number("limit")
    w = fb.constant([[1.0, 2.0], [0.5, 0.1]])
    last = fb.while_loop(
        lambda i, v: fb.reduce_sum(v) < limit,
        lambda i, v: (i + 1, v @ w + x),
        [0, fb.ones([1, 2]) * x],
    )
    made = exchanged(last, {x: 1.0, limit: 50.0}, {x: 1.0, limit: -50.0})
    assert types(made.graph).count("Loop") == 1


def test_a_loop_of_as_many_iterations_as_there_may_be() -> None:
    x, most = number(), fb.placeholder(fb.int32, [])
    [last] = fb.while_loop(lambda v: v < 100.0, lambda v: [v * 2.0], [x], maximum_iterations=most)
    exchanged([last], {x: 1.0, most: 3}, {x: 1.0, most: 30})


def test_a_variable_of_a_shape_that_grows() -> None:
    n = fb.placeholder(fb.int32, [])
    _, found = fb.while_loop(
        lambda i, v: i < n,
        lambda i, v: (i + 1, fb.concat([v, fb.cast(fb.reshape(i, [1]), fb.float32)], 0)),
        (0, fb.zeros([1])),
        shape_invariants=(None, [None]),
    )
    exchanged([found], {n: 4}, {n: 0})


def test_loops_and_branches_in_each_other() -> None:
    x, rows = number(), fb.placeholder(fb.float32, [None, 2])
    found = fb.map_fn(
        lambda row: fb.cond(
            fb.reduce_sum(row) > x,
            lambda: row * 2.0,
            lambda: fb.map_fn(lambda element: element * element + x, row),
        ),
        rows,
    )
    exchanged([found], {x: 1.5, rows: [[1, 2], [0, 1]]}, {x: 1.5, rows: np.zeros([0, 2])})


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("initializer", [None, 0.0])
def test_scans(reverse: bool, initializer: Any) -> None:
    x, rows = number(), fb.placeholder(fb.float32, [None, 2])
    first = None if initializer is None else fb.zeros([2])
    found = fb.scan(lambda a, row: a * x + row, rows, first, reverse=reverse)
    exchanged([found], {x: 1.5, rows: [[1, 2], [3, 4], [5, 6]]}, {x: 1.5, rows: [[1, 2]]})


def test_folds_of_rows_whose_shape_only_the_run_knows() -> None:
    rows = fb.placeholder(fb.float32, [None, None])
    found = fb.foldl(lambda a, row: a + fb.reduce_sum(row), rows, fb.zeros([]))
    exchanged([found], {rows: [[1, 2], [3, 4]]}, {rows: [[1, 2, 3]]})


def test_arrays_by_hand() -> None:
    x = fb.placeholder(fb.float32, [3, 2])
    array = (
        fb.TensorArray(fb.float32, 4, clear_after_read=False).scatter([2, 0, 1], x).write(3, x[0])
    )
    exchanged([array.gather([3, 1]), array.stack(), array.size()], {x: np.ones([3, 2])})


def test_a_recurrent_network_of_sequences_of_their_own_lengths() -> None:
    x, lengths = fb.placeholder(fb.float32, [2, None, 3]), fb.placeholder(fb.int32, [2])
    w = fb.constant(np.linspace(-1, 1, 12).reshape(3, 4).astype(np.float32))

    def cell(x: fb.Tensor, state: fb.Tensor) -> tuple[fb.Tensor, fb.Tensor]:
        state = fb.tanh(x @ w + state)
        return state * 2.0, state

    outputs, last = fb.nn.dynamic_rnn(cell, x, fb.zeros([2, 4]), lengths)
    random = np.random.default_rng(0)
    long = {x: random.normal(size=(2, 5, 3)).astype(np.float32), lengths: [3, 5]}
    short = {x: random.normal(size=(2, 1, 3)).astype(np.float32), lengths: [1, 0]}
    exchanged([outputs, last], long, short)


def test_what_is_written_to_a_gradients_array_adds_up() -> None:
    x = fb.placeholder(fb.float32, [2])
    sums = fb.TensorArray(fb.float32, 3, element_shape=[2]).grad().write(1, x).write(1, x * 2.0)
    exchanged([sums.stack()], {x: [1, 2]})


@pytest.mark.parametrize("swap_memory", [False, True])
def test_the_derivatives_of_loops(swap_memory: bool) -> None:
    x, n = fb.placeholder(fb.float32, [2]), fb.placeholder(fb.int32, [])

    def body(i: fb.Tensor, y: fb.Tensor) -> tuple[fb.Tensor, fb.Tensor]:
        return i + 1, fb.cond(fb.equal(i, 1), lambda: fb.exp(y) * x, lambda: fb.sin(y * x))

    _, y = fb.while_loop(lambda i, _: i < n, body, (0, x), swap_memory=swap_memory)
    [slope] = fb.gradients(y, x)
    curvature = fb.gradients(slope, x)
    exchanged([y, slope, *curvature], {x: [0.5, 1.0], n: 3}, {x: [0.5, 1.0], n: 0})


def repeated(y: fb.Tensor, x: fb.Tensor, count: Any) -> fb.Tensor:
    return fb.while_loop(lambda j, _: j < count, lambda j, z: (j + 1, fb.sin(z * x)), (0, y))[1]


@pytest.mark.parametrize("is_in_branch", [False, True])
def test_the_derivatives_of_loops_in_loops(is_in_branch: bool) -> None:
    """Stacks of stacks, each as high as its loop had iterations."""
    x, n = fb.placeholder(fb.float32, [2]), fb.placeholder(fb.int32, [])

    def body(i: fb.Tensor, y: fb.Tensor) -> tuple[fb.Tensor, fb.Tensor]:
        if not is_in_branch:
            return i + 1, repeated(y, x, i)
        return i + 1, fb.cond(fb.equal(i, 1), lambda: y * x, lambda: repeated(y, x, i))

    _, y = fb.while_loop(lambda i, _: i < n, body, (0, x))
    exchanged([y, *fb.gradients(y, x)], {x: [0.5, 1.0], n: 3}, {x: [0.5, 1.0], n: 0})


def test_the_derivative_of_a_loop_over_as_many_rows_as_there_are() -> None:
    x = fb.placeholder(fb.float32, [None, 2])
    _, y = fb.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, fb.sin(y * x)), (0, x))
    exchanged([y, *fb.gradients(y, x)], {x: [[0.5, 1.0]]}, {x: np.ones((3, 2))})


def test_the_derivatives_of_what_goes_over_elements() -> None:
    x = fb.placeholder(fb.float32, [None])
    mapped, scanned = fb.map_fn(lambda a: fb.sin(a) * a, x), fb.scan(lambda a, b: a * b + b, x)
    slopes = fb.gradients([mapped, scanned], x)
    exchanged([mapped, scanned, *slopes], {x: [1.0, 2.0, 3.0]}, {x: [1.0]})


@pytest.mark.parametrize("dims", [[2], [None]], ids=str)
def test_an_array_that_grows_and_its_derivative(dims: Any) -> None:
    x, n = fb.placeholder(fb.float32, dims), fb.placeholder(fb.int32, [])
    _, array = fb.while_loop(
        lambda i, _: i < n,
        lambda i, array: (i + 1, array.write(i, x * fb.cast(i + 1, fb.float32))),
        (0, fb.TensorArray(fb.float32, dynamic_size=True)),
    )
    y = array.stack()
    slopes = fb.gradients(y * y, x)
    exchanged([y, array.size(), *slopes], {x: [0.5, 1.0], n: 3}, {x: [2.0, 1.0], n: 1})


def test_arrays_of_pieces_of_one_length_and_their_derivatives() -> None:
    x = fb.placeholder(fb.float32, [4, 2])
    options: Any = {"element_shape": [2, 2], "clear_after_read": False}
    pieces = fb.TensorArray(fb.float32, 2, **options).split(x, [2, 2])
    rows = fb.TensorArray(fb.float32, 2, **options).scatter([1, 0], fb.reshape(x, [2, 2, 2]))
    fetches = [pieces.concat(), pieces.stack(), rows.concat()]
    slopes = fb.gradients([t * t for t in fetches], x)
    exchanged([*fetches, *slopes], {x: np.arange(8).reshape(4, 2)})


def test_variables_are_stored_and_read_in_loops() -> None:
    x, v = number(), fb.Variable(2.0)
    [found] = fb.while_loop(lambda a: a < 10.0, lambda a: [a * v], [x])
    with fb.Session() as sess:
        sess.run(fb.global_variables_initializer())
        made = fb.onnx.save({"y": found}, {"x": x}, session=sess)
    [last] = reference.ReferenceEvaluator(made).run(None, {"x": np.float32(3)})
    assert last == 12


def refused(make: Callable[[fb.Tensor], Any], match: str) -> None:
    x = number()
    with pytest.raises(fb.errors.UnimplementedError, match=match):
        fb.onnx.save({"y": make(x)}, {"x": x})


def test_what_cannot_be_written_is_named() -> None:
    def slope(x: fb.Tensor) -> fb.Tensor:
        rows = fb.ones([fb.cast(x, fb.int32), 2])  # Of as many rows as only the run knows.
        _, y = fb.while_loop(
            lambda i, _: i < 2, lambda i, y: (i + 1, repeated(y, rows, i)), (0, rows)
        )
        return fb.gradients(y, rows)[0]

    refused(slope, "a stack of arrays, or of stacks whose elements have open shapes")
    row, reads = fb.placeholder(fb.float32, [None]), fb.TensorArray(fb.float32, 2)
    with pytest.raises(fb.errors.UnimplementedError, match="whose elements have the shape") as e:
        fb.onnx.save([reads.size(), reads.write(0, row).stack()], row)
    assert "element_shape" in e.value.hint


def test_what_is_inside_of_a_branch_is_not_fetched() -> None:
    inside = []

    def true_fn() -> Any:
        inside.append(fb.exp(x))
        return inside[0]

    x = number()
    fb.cond(x > 0, true_fn, lambda: x)
    with pytest.raises(fb.errors.InvalidArgumentError, match="is inside of a branch or a loop"):
        fb.onnx.save(inside, x)


def test_what_is_routed_by_hand_is_refused() -> None:
    x = number()
    one, other = fb.control_flow.switch(x, x > 0)
    nested, _ = fb.control_flow.switch(other, x > 1)
    merged, _ = fb.control_flow.merge([one, nested])
    with pytest.raises(fb.errors.UnimplementedError, match="part of no branch or loop"):
        fb.onnx.save(merged, x)


# Read

# ONNX's evaluator does not begin a loop whose condition is left out.
YES = {"yes": np.array(True)}


def branch(name: str, *nodes: Any, dims: Any = ()) -> Any:
    """A graph without inputs that gives what its last node gives."""
    return helper.make_graph(list(nodes), name, [], [value(nodes[-1].output[0], dims)])


def loop_body(nodes: Any, variables: dict[str, Any], collected: Any = ()) -> Any:
    """The body of a Loop whose condition is "on", and that gives "next NAME" of each variable."""
    inputs = [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL)]
    inputs += [value(n, dims) for n, dims in variables.items()]
    outputs = [value("on", [], TensorProto.BOOL)]
    outputs += [value(f"next {n}", dims) for n, dims in variables.items()]
    return helper.make_graph(nodes, "body", inputs, [*outputs, *collected])


def reads(proto: Any, *feeds: dict[str, Any], **how: Any) -> Any:
    """What a model gives that is read, which is what ONNX's evaluator gives."""
    evaluator = reference.ReferenceEvaluator(proto)
    loaded = fb.onnx.load(proto, **how)
    with fb.Session(graph=loaded.graph) as sess:
        for given_values in feeds:
            found = sess.run(
                list(loaded.outputs.values()),
                {loaded.inputs[n]: v for n, v in given_values.items()},
            )
            arrays = {n: np.asarray(v) for n, v in given_values.items()}
            for one, right in zip(found, evaluator.run(None, arrays), strict=True):
                assert one.shape == np.shape(right)
                np.testing.assert_allclose(one, right, rtol=1e-6)
    return loaded


def test_an_if_is_a_branch() -> None:
    node = helper.make_node(
        "If", ["c"], ["y"],
        then_branch=branch("t", helper.make_node("Exp", ["x"], ["a"])),
        else_branch=branch("e", helper.make_node("Neg", ["x"], ["b"])),
    )  # fmt: skip
    inputs = [value("c", [1], TensorProto.BOOL), value("x", [])]
    x = np.float32(2)
    given_values = [{"c": np.array([c]), "x": x} for c in (True, False)]
    loaded = reads(model([node], inputs, [value("y", [])]), *given_values)
    assert "Merge" in {op.type for op in loaded.graph.operations}
    [dx] = fb.gradients(loaded.outputs["y"], [loaded.inputs["x"]])
    with fb.Session() as sess:
        assert sess.run(dx, {loaded.inputs["c"]: [False], loaded.inputs["x"]: 2.0}) == -1


def doubling() -> Any:
    """A Loop that doubles "x" as long as it is less than "limit"; it collects what there was."""
    nodes = [
        helper.make_node("Add", ["v", "v"], ["next v"]),
        helper.make_node("Less", ["next v", "limit"], ["on"]),
        helper.make_node("Identity", ["v"], ["part"]),
    ]
    return loop_body(nodes, {"v": []}, [value("part", [])])


@pytest.mark.parametrize("most", ["", "fifty"])
def test_a_loop_goes_on_as_long_as_its_condition_says(most: str) -> None:
    node = helper.make_node("Loop", [most, "yes", "x"], ["y", "all"], body=doubling())
    outputs = [value("y", []), value("all", ["n"])]
    stored = {**YES, "fifty": np.array(50)}
    proto = model([node], [value("x", []), value("limit", [])], outputs, stored)
    loaded = fb.onnx.load(proto)
    for limit, wanted in ((100.0, 7), (0.0, 1)):
        with fb.Session() as sess:
            feeds = {loaded.inputs["x"]: 1.0, loaded.inputs["limit"]: limit}
            last, parts = sess.run([*loaded.outputs.values()], feeds)
        assert last == 2.0**wanted
        np.testing.assert_array_equal(parts, 2.0 ** np.arange(wanted))


@pytest.mark.parametrize("most", [0, 3, 50])
def test_a_loop_has_no_more_iterations_than_its_limit(most: int) -> None:
    node = helper.make_node("Loop", ["most", "go on", "x"], ["y", "all"], body=doubling())
    inputs = [value("x", []), value("most", [], TensorProto.INT64)]
    inputs += [value("go on", [], TensorProto.BOOL), value("limit", [])]
    proto = model([node], inputs, [value("y", []), value("all", ["n"])])
    given_values = {"x": np.float32(1), "most": np.array(most), "limit": np.float32(100)}
    loaded = fb.onnx.load(proto)
    with fb.Session() as sess:
        for goes_on, wanted in ((True, min(most, 7)), (False, 0)):
            feeds = {loaded.inputs[n]: v for n, v in given_values.items()}
            last, parts = sess.run(
                [*loaded.outputs.values()], {**feeds, loaded.inputs["go on"]: goes_on}
            )
            assert last == 2.0**wanted
            np.testing.assert_array_equal(parts, 2.0 ** np.arange(wanted))


def test_a_counted_loop_is_one_whose_length_is_known() -> None:
    nodes = [
        helper.make_node("Identity", ["go"], ["on"]),
        helper.make_node("Add", ["v", "x"], ["next v"]),
        helper.make_node("Mul", ["v", "v"], ["part"]),
    ]
    body = loop_body(nodes, {"v": []}, [value("part", [])])
    node = helper.make_node("Loop", ["n", "yes", "x"], ["y", "all"], body=body)
    outputs = [value("y", []), value("all", [1000])]
    proto = model([node], [value("x", [])], outputs, {"n": np.array(1000), **YES})
    loaded = fb.onnx.load(proto)
    with fb.Session() as sess:
        last, parts = sess.run([*loaded.outputs.values()], {loaded.inputs["x"]: 0.5})
    assert last == 500.5
    np.testing.assert_array_equal(parts, np.arange(0.5, 500.5, 0.5) ** 2)
    assert loaded.outputs["all"].shape == [1000]
    assert len(loaded.graph.operations) < 60


def test_a_variable_that_grows_in_a_loop_is_learnt() -> None:
    nodes = [
        helper.make_node("Identity", ["go"], ["on"]),
        helper.make_node("Concat", ["v", "x"], ["next v"], axis=0),
    ]
    node = helper.make_node(
        "Loop", ["n", "yes", "x"], ["y"], body=loop_body(nodes, {"v": ["k", 2]})
    )
    inputs = [value("x", [1, 2]), value("n", [], TensorProto.INT64)]
    proto = model([node], inputs, [value("y", ["k", 2])], YES)
    x = np.ones([1, 2], np.float32)
    loaded = reads(proto, {"x": x, "n": np.array(3)}, {"x": x, "n": np.array(0)})
    assert loaded.outputs["y"].shape == [None, 2]
    assert loaded.scope == "net/"
    assert len([op for op in loaded.graph.operations if op.type == "Exit"]) == 3


def test_a_loop_is_unrolled_where_what_it_gives_decides_what_is_built() -> None:
    nodes = [
        helper.make_node("Identity", ["go"], ["on"]),
        helper.make_node("Add", ["v", "one"], ["next v"]),
    ]
    node = helper.make_node("Loop", ["n", "yes", "zero"], ["k"], body=loop_body(nodes, {"v": []}))
    rest = [
        helper.make_node("Cast", ["k"], ["axes"], to=TensorProto.INT64),
        helper.make_node("ReduceSum", ["x", "axes"], ["y"]),
    ]
    stored = {
        **YES,
        "n": np.array(1),
        "one": np.ones(1, np.float32),
        "zero": np.zeros(1, np.float32),
    }
    proto = model([node, *rest], [value("x", [2, 3])], [value("y", [2, 1])], stored)
    loaded = reads(proto, {"x": np.ones([2, 3], np.float32)})
    assert not {op.type for op in loaded.graph.operations} & {"Enter", "Exit"}


def test_a_scan_over_as_many_elements_as_there_are() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Add", ["s", "e"], ["total"]),
            helper.make_node("Mul", ["s", "e"], ["product"]),
        ],
        "body",
        [value("s", [2]), value("e", [2])],
        [value("total", [2]), value("product", [2])],
    )
    node = helper.make_node(
        "Scan", ["x", "z"], ["last", "all"],
        body=body, num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1],
    )  # fmt: skip
    outputs = [value("last", [2]), value("all", ["n", 2])]
    proto = model([node], [value("x", [2]), value("z", [2, "n"])], outputs)
    z = np.arange(6, dtype=np.float32).reshape(2, 3)
    loaded = fb.onnx.load(proto)
    for part in (z, z[:, :1]):
        with fb.Session() as sess:
            last, parts = sess.run(
                [*loaded.outputs.values()], {loaded.inputs["x"]: [1, 2], loaded.inputs["z"]: part}
            )
        state, wanted = np.array([1, 2], np.float32), []
        for element in part.T[::-1]:
            wanted.append(state * element)
            state = state + element
        np.testing.assert_array_equal(last, state)
        np.testing.assert_array_equal(parts, wanted)


def test_a_model_that_fails_in_a_loop_leaves_nothing(graph: fb.Graph) -> None:
    nodes = [
        helper.make_node("Identity", ["go"], ["on"]),
        helper.make_node("Concat", ["v", "x"], ["wide"], axis=0),
        helper.make_node("ReduceSum", ["wide", "axes"], ["next v"]),
    ]
    node = helper.make_node("Loop", ["", "", "x"], ["y"], body=loop_body(nodes, {"v": ["k"]}))
    inputs = [value("x", [1]), value("axes", [1], TensorProto.INT64)]
    with pytest.raises(fb.errors.UnimplementedError, match="needs the value of 'axes'"):
        fb.onnx.load(model([node], inputs, [value("y", ["k"])]))
    assert not graph.operations
    assert fb.cond(fb.placeholder(fb.bool, []), lambda: 1, lambda: 2).graph is graph
