"""Functions and their calls: what is built, how often, and what it gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.building.verify import check

INLINE = pytest.mark.parametrize("inline", [True, False], ids=["inline", "kept"])


@INLINE
def test_a_body_is_built_once_for_a_signature(inline: bool) -> None:
    built = []

    @fb.function(inline=inline)
    def double(x: Any, times: int = 2) -> Any:
        built.append(times)
        return x * times

    one, two = fb.placeholder(fb.float32, []), fb.placeholder(fb.float32, [2])
    ys = [double(one), double(one + 1), double(two), double(x=one, times=3), double(two, 2)]
    assert built == [2, 2, 3]
    assert [op.name for op in double.definitions()] == [
        "functions/double",
        "functions/double_1",
        "functions/double_2",
    ]
    with fb.Session() as sess:
        found = sess.run(ys, {one: 1.0, two: [1.0, 2.0]})
    assert [np.asarray(y).tolist() for y in found] == [2, 4, [2, 4], 3, [2, 4]]
    check(fb.get_default_graph())


def test_a_kept_call_is_one_operation() -> None:
    @fb.function(inline=False)
    def f(x: Any) -> Any:
        return fb.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * x), (0, x))[1]

    x = fb.placeholder(fb.float32, [], name="x")
    y = f(x)
    before = len(fb.get_default_graph().operations)
    y = f(y)
    assert len(fb.get_default_graph().operations) == before + 1
    with fb.Session() as sess:
        assert sess.run([y, "f:0"], {x: 2.0}) == [16.0**4, 16]
        # What is in a call has a name there, and is fetched and fed by it.
        assert sess.run("f_1/while/Exit_1:0", {x: 2.0}) == 16.0**4
        assert sess.run(y, {"f/while/Exit_1:0": 3.0}) == 81
        assert sess.run(y, {"f:0": 3.0}) == 81
    with pytest.raises(fb.errors.NotFoundError, match="f_1/nothing"):
        fb.get_default_graph().get_tensor_by_name("f_1/nothing:0")


class Pair(NamedTuple):
    one: Any
    other: Any


@INLINE
def test_structures_go_in_and_come_out(inline: bool) -> None:
    @fb.function(inline=inline)
    def f(pair: Pair, *more: Any, **options: Any) -> Any:
        assert options["how"] == "add"
        return {"sum": pair.one + more[0], "pair": Pair(pair.other["x"], [more[1], 2.0])}

    given = Pair(fb.constant(1.0), {"x": fb.constant(2.0)})
    found = f(given, np.float32([3.0]), fb.constant(4.0), how="add")
    with fb.Session() as sess:
        values = sess.run(found)
    assert values["sum"].tolist() == [4]
    assert isinstance(found["pair"], Pair)
    assert [float(v) for v in (values["pair"].one, *values["pair"].other)] == [2, 4, 2]


@INLINE
def test_variables_are_made_once_and_shared(inline: bool) -> None:
    @fb.function(inline=inline)
    def dense(x: Any) -> Any:
        w = fb.Variable([[2.0]], name="w")
        return fb.matmul(x, w)

    x = fb.placeholder(fb.float32, [1, 1], name="x")
    y = dense(dense(x))
    graph = fb.get_default_graph()
    [w] = graph.variables()
    train = fb.train.GradientDescentOptimizer(0.5).minimize(fb.reduce_sum(y))
    assert fb.lint(loss=fb.reduce_sum(y)).findings == []
    with fb.Session() as sess:
        assert sess.run([y, train], {x: [[1.0]]})[0].tolist() == [[4]]
        assert sess.run(w).tolist() == [[0]]  # The gradient of w * w is 4.


@INLINE
def test_what_is_used_by_name_is_an_input_of_every_call(inline: bool) -> None:
    scale = fb.placeholder(fb.float32, [], name="scale")

    @fb.function(inline=inline)
    def f(x: Any) -> Any:
        return fb.cond(x > 0, lambda: x * scale, lambda: -x)

    x = fb.placeholder(fb.float32, [], name="x")
    _, y = fb.while_loop(lambda i, t: i < 2, lambda i, t: (i + 1, f(t)), (0, x))
    grads = fb.gradients(y, [x, scale])
    with fb.Session() as sess:
        assert sess.run([y, *grads], {x: 2.0, scale: 3.0}) == [18, 9, 12]
        assert sess.run(y, {x: -2.0, scale: 3.0}) == 6


@INLINE
def test_only_what_a_result_needs_is_fed(inline: bool) -> None:
    @fb.function(inline=inline)
    def both(a: Any, b: Any) -> Any:
        return a * 2, b * 3

    a, b = fb.placeholder(fb.float32, []), fb.placeholder(fb.float32, [])
    doubled, _ = both(a, b)
    with fb.Session() as sess:
        assert sess.run(doubled, {a: 2.0}) == 4


@INLINE
def test_what_acts_acts_in_every_call(inline: bool) -> None:
    total = fb.Variable(1.0)

    @fb.function(inline=inline)
    def count(x: Any) -> Any:
        fb.assign_add(total, x)
        return x

    @fb.function(inline=inline)
    def double() -> None:
        fb.assign(total, total.value * 2)

    x = fb.placeholder(fb.float32, [])
    y = count(count(x))
    done = double()
    assert isinstance(done, fb.Operation)
    with fb.control_dependencies([double()]):
        after = fb.identity(total)
    taken = fb.cond(x > 0, lambda: count(x), lambda: x)
    with fb.Session() as sess:
        sess.run(y, {x: 2.0})
        assert sess.run(total) == 5
        sess.run(done)
        assert sess.run(total) == 10
        assert sess.run(after) == 20
        sess.run(taken, {x: -1.0})
        assert sess.run(total) == 20
        sess.run(taken, {x: 1.0})
        assert sess.run(total) == 21


@INLINE
def test_every_call_draws_its_own_numbers(inline: bool) -> None:
    @fb.function(inline=inline)
    def dropped(x: Any) -> Any:
        return x * fb.random_uniform([8])

    x = fb.placeholder(fb.float32, [8])
    one, two = dropped(x), dropped(x)
    [gradient] = fb.gradients(one, [x])
    with fb.Session() as sess:
        first, second, slope = sess.run([one, two, gradient], {x: np.full(8, 2.0)})
        assert not np.array_equal(first, second)
        np.testing.assert_allclose(slope * 2, first)  # It is of the numbers that the call drew.
        assert not np.array_equal(first, sess.run(one, {x: np.full(8, 2.0)}))


@INLINE
def test_a_loop_in_a_branch_of_a_body_is_differentiated(inline: bool) -> None:
    @fb.function(inline=inline)
    def power(x: Any) -> Any:
        def cubed() -> Any:
            return fb.while_loop(lambda i, t: i < 2, lambda i, t: (i + 1, t * x), (0, x))[1]

        return fb.cond(x > 0, cubed, lambda: fb.cond(x > -1, lambda: x, lambda: cubed() * 2))

    x = fb.placeholder(fb.float32, [])
    y = power(x)
    [first] = fb.gradients(y, x)
    [second] = fb.gradients(first, x)
    with fb.Session() as sess:
        for at, wanted in ((2.0, (8, 12, 12)), (-0.5, (-0.5, 1, 0)), (-2.0, (-16, 24, -24))) * 2:
            assert tuple(sess.run([y, first, second], {x: at})) == wanted


@INLINE
def test_a_body_may_ask_for_another_device_than_its_call(inline: bool) -> None:
    @fb.function(inline=inline)
    def f(x: Any) -> Any:
        with fb.device("/cpu:1"):
            u = fb.square(x)
        return u * x

    x = fb.placeholder(fb.float32, [])
    with fb.device("/cpu:2"):
        y = f(x)
    [first] = fb.gradients(y, x)
    [second] = fb.gradients(first, x)
    with fb.Session(cpus=3) as sess:
        assert sess.run([y, first, second], {x: 2.0}) == [8, 12, 12]


def test_what_a_kept_call_did_in_a_loop_has_no_gradient() -> None:
    def noisy(x: Any) -> Any:
        def body(i: Any, t: Any) -> Any:
            return i + 1, t * fb.random_uniform([])

        return fb.while_loop(lambda i, t: i < 2, body, (0, x))[1]

    x = fb.placeholder(fb.float32, [])
    with pytest.raises(fb.errors.UnimplementedError, match="RandomUniform") as raised:
        fb.gradients(fb.function(noisy, inline=False)(x), [x])
    assert "inline=True" in str(raised.value)
    [gradient] = fb.gradients(fb.function(noisy)(x), [x])
    with fb.Session() as sess:
        assert 0 < sess.run(gradient, {x: 1.0}) < 1


@INLINE
def test_a_gradient_of_its_own_is_that_of_every_call(inline: bool) -> None:
    w = fb.Variable(2.0)

    @fb.function(inline=inline)
    def f(x: Any) -> Any:
        @fb.custom_gradient
        def squared(x: Any) -> Any:
            y = x * w
            return y * y, lambda dy: dy * y * 100

        return squared(x) + x

    x = fb.placeholder(fb.float32, [])
    [first] = fb.gradients(f(f(x)), [x])
    [second] = fb.gradients(first, [x])
    with fb.Session() as sess:
        # f = 4 x^2 + x; its derivative is said to be 200 x + 1.
        assert sess.run(first, {x: 1.0}) == (200 * 5 + 1) * 201
        assert sess.run(second, {x: 1.0}) == 200 * 201 * 201 + (200 * 5 + 1) * 200


@INLINE
def test_rows_that_are_gathered_have_sparse_gradients(inline: bool) -> None:
    table = fb.Variable(np.ones((4, 2), np.float32))
    look_up = fb.function(lambda rows: fb.gather(table, rows) * 3.0, inline=inline)
    rows = fb.placeholder(fb.int32, [2])
    [gradient] = fb.gradients(look_up(rows), [table])
    assert isinstance(gradient, fb.IndexedSlices)
    with fb.Session() as sess:
        found = sess.run(gradient, {rows: [1, 3]})
    assert found.indices.tolist() == [1, 3]
    assert found.values.tolist() == [[3, 3], [3, 3]]


def test_a_function_that_calls_itself_is_refused() -> None:
    @fb.function
    def f(x: Any) -> Any:
        return f(x[1:])

    with pytest.raises(fb.errors.InvalidArgumentError, match="'f' calls itself"):
        f(fb.placeholder(fb.float32, [3]))


def test_errors_of_a_body_name_the_function_and_the_call() -> None:
    @fb.function
    def product(a: Any, b: Any) -> Any:
        return fb.matmul(a, b)

    with pytest.raises(fb.errors.InvalidArgumentError) as raised:
        product(fb.zeros([2, 3]), fb.zeros([2, 3]))
    message = str(raised.value)
    assert "return fb.matmul(a, b)" in message
    assert "in the function 'product', called at test_calls.py" in message
    with pytest.raises(fb.errors.InvalidTypeError, match="its signature is product"):
        product(fb.zeros([2, 2]))
    with pytest.raises(fb.errors.InvalidTypeError, match="cannot be compared"):
        product([1], {1, 2})


def test_what_is_inside_of_a_body_has_no_value() -> None:
    f = fb.function(lambda x: fb.negative(x, name="inner"), name="f")
    f(fb.constant(1.0))
    inner = fb.get_default_graph().get_tensor_by_name("functions/f/inner:0")
    with pytest.raises(fb.errors.InvalidArgumentError, match="inside of the function"):
        inner + 1
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError, match="by the call"):
        sess.run(inner)


@INLINE
def test_tools_see_what_calls_do(inline: bool) -> None:
    @fb.function(inline=inline)
    def f(x: Any) -> Any:
        return fb.log(fb.matmul(x, x), name="log")

    x = fb.placeholder(fb.float32, [3, 3], name="x")
    y = f(x)
    assert fb.forecast(y, {x: (3, 3)}).total.flops == 2 * 27 + 9 * 10
    with fb.Session() as sess:
        sess.retain_feeds()
        sess.run(y, {x: np.ones((3, 3))})
        assert sess.peek("f/log:0")[0, 0] == pytest.approx(np.log(3))
        with sess.guard(), pytest.raises(fb.errors.InvalidArgumentError, match="'f/log'"):
            sess.run(y, {x: np.zeros((3, 3))})
        with sess.partial_run([y, x], [x]) as step:
            assert step.run(y, {x: np.ones((3, 3))})[0, 0] == pytest.approx(np.log(3))


LOADING = """
import sys
import numpy as np
import flowbook as fb
layer = fb.Function.load(sys.argv[1], "layer", inline=sys.argv[2] == "True")
print(layer)
x = fb.placeholder(fb.float32, [2], name="x")
y = layer(x=layer(x))
_, z = fb.while_loop(lambda i, t: i < 2, lambda i, t: (i + 1, layer(t)), (0, x))
grads = fb.gradients(y, [x, *fb.get_default_graph().variables()])
with fb.Session() as sess:
    for value in sess.run([y, z, *grads], {x: [1.0, 2.0]}):
        print(value.tolist())
"""


@INLINE
def test_a_stored_function_is_called_in_another_process(tmp_path: Path, inline: bool) -> None:
    w = fb.Variable([2.0, 3.0], name="w")

    @fb.function
    def layer(x: Any) -> Any:
        _, total = fb.while_loop(lambda i, t: i < 2, lambda i, t: (i + 1, t + w), (0, x))
        return total * w

    x = fb.placeholder(fb.float32, [2], name="x")
    y = layer(layer(x))
    grads = fb.gradients(y, [x, w])
    layer.save(tmp_path / "layer.graph")
    fb.get_default_graph().save(tmp_path / "all.graph")
    with fb.Session() as sess:
        y_, dx, dw = (v.tolist() for v in sess.run([y, *grads], {x: [1.0, 2.0]}))
    for name in ("layer.graph", "all.graph"):
        arguments = [sys.executable, "-c", LOADING, str(tmp_path / name), str(inline)]
        printed = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
        assert printed.splitlines() == [
            "<Function layer(x: float32 [2]) -> float32 [2]>",
            *map(str, (y_, y_, dx, dw)),
        ]


@INLINE
def test_a_stored_graph_with_calls_runs_and_differentiates(inline: bool) -> None:
    @fb.function(inline=inline)
    def f(x: Any) -> Any:
        return fb.cond(x > 0, lambda: x * x, lambda: fb.sin(x))

    x = fb.placeholder(fb.float32, [], name="x")
    fb.identity(f(f(x)), name="y")
    again = fb.Graph.from_bytes(fb.get_default_graph().to_bytes())
    assert again.to_bytes() == fb.get_default_graph().to_bytes()
    check(again)
    with again.as_default(), fb.Session() as sess:
        [gradient] = fb.gradients(again.get_tensor_by_name("y:0"), again.get_tensor_by_name("x:0"))
        assert sess.run(["y:0", gradient], {"x:0": 2.0}) == [16, 32]
    with fb.Graph().as_default() as other:
        for name in ("one", "two"):
            fb.import_graph_def(again, name=name)
        check(other)
        with fb.Session() as sess:
            assert sess.run(["one/y:0", "two/y:0"], {"one/x:0": 2.0, "two/x:0": 3.0}) == [16, 81]


def test_what_a_file_has_not_is_said(tmp_path: Path) -> None:
    one, two = fb.function(lambda x: x, name="one"), fb.function(lambda x: x, name="two")
    with pytest.raises(fb.errors.FailedPreconditionError, match="no body yet"):
        one.save(tmp_path / "f")
    one(fb.zeros([2]))
    two(fb.zeros([2]))
    fb.get_default_graph().save(tmp_path / "f")
    with fb.Graph().as_default():
        with pytest.raises(fb.errors.NotFoundError, match="'one', 'two'"):
            fb.Function.load(tmp_path / "f")
        loaded = fb.Function.load(tmp_path / "f", "one")
        with pytest.raises(fb.errors.InvalidArgumentError, match=r"float32 \[3\]"):
            loaded(fb.zeros([3]))
        with pytest.raises(fb.errors.InvalidTypeError, match="its arguments are x"):
            loaded()


@INLINE
def test_summaries_are_those_of_each_call(inline: bool) -> None:
    @fb.function(inline=inline)
    def layer(x: Any) -> Any:
        y = x * 2
        fb.summary.scalar("y", y)
        return y

    x = fb.placeholder(fb.float32, [])
    y = layer(layer(x))
    summaries = fb.get_default_graph().summaries()
    assert [op.name for op in summaries] == ["layer/y/summary", "layer_1/y/summary"]
    with fb.Session() as sess:
        kept = sess.summarize(fetches=y, series="run")
        sess.run(y, {x: 3.0})
        for tag, value in (("run/layer/y", 6), ("run/layer_1/y", 12)):
            assert [point.value for point in kept.history.points(tag)] == [value]


@INLINE
def test_a_constant_result_is_there_in_each_iteration(inline: bool) -> None:
    following = fb.function(lambda i, t: (i + 1, 0.5), name="following", inline=inline)
    _, y = fb.while_loop(lambda i, t: i < 2, lambda i, t: following(i, t), (0, 1.0))
    with fb.Session() as sess:
        assert sess.run(y) == 0.5


@pytest.mark.parametrize("is_in_loop", [False, True])
def test_a_gradient_calls_in_a_branch_of_what_is_being_built(is_in_loop: bool) -> None:
    """The call reads a variable there, which the function or the loop around has to know of."""
    x, w = fb.placeholder(fb.float64, []), fb.Variable(0.7, dtype=fb.float64)
    inner = fb.function(lambda s: fb.tanh(s) * w, inline=False)

    def chosen(s: Any) -> Any:
        return fb.cond(s > 0.0, lambda: inner(s), lambda: s * 2.0)

    def slopes(s: Any) -> Any:
        return fb.gradients(chosen(s), [s, w])

    if is_in_loop:
        zero = fb.constant(0.0, fb.float64)
        _, found = fb.while_loop(
            lambda i, _: i < 2, lambda i, _: (i + 1, slopes(x + 0.0)), (0, [zero, zero])
        )
    else:
        found = fb.gradients(fb.function(chosen, inline=False)(x), [x, w])
    with fb.Session() as sess:
        for _ in range(2):
            assert np.allclose(sess.run(found, {x: 1.0}), [0.7 / np.cosh(1) ** 2, np.tanh(1)])
            assert np.allclose(sess.run(found, {x: -1.0}), [2.0, 0.0])
