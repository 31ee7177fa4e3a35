"""`vectorized_map`, held against `map_fn`: the same function in a loop."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.control_flow import Batching
from flowbook.graph.definition.inference import broadcast_inputs

COUNT = 3
RANDOM = np.random.default_rng(5)
M = RANDOM.normal(size=(COUNT, 2, 4))
W = RANDOM.normal(size=(4, 2))
V = RANDOM.normal(size=(COUNT, 4))
IDS = np.array([2, 0, 1])

# Each takes a matrix [2, 4], a vector [4] and an index of one element.
FORMS: dict[str, Any] = {
    "elementwise": lambda m, v, i: fb.tanh(m) * v + fb.exp(m[0]) - 0.5,
    "ranks that differ": lambda m, v, i: v[0] * m + fb.maximum(v, m),
    "a tensor of higher rank for all": lambda m, v, i: v * fb.constant(M),
    "no expression": lambda m, v, i: fb.erf(m) ** 2.0 + fb.cast(i, fb.float64) + fb.identity(v),
    "chosen": lambda m, v, i: fb.where(m > 0.0, m, fb.zeros_like(m)),
    "product with one for all": lambda m, v, i: fb.matmul(m, fb.constant(W)),
    "product of one for all": lambda m, v, i: fb.matmul(fb.constant(W), m),
    "product of two": lambda m, v, i: fb.matmul(m, m, transpose_b=True),
    "product of batches": lambda m, v, i: fb.matmul(fb.constant(M), m, transpose_b=True),
    "by kernels of their own": lambda m, v, i: fb.igamma(fb.abs(m), fb.abs(v)) + m // v + m % v,
    "bias": lambda m, v, i: fb.nn.bias_add(m, fb.constant(W[:, 0])),
    "sum": lambda m, v, i: fb.reduce_sum(m),
    "mean of an axis": lambda m, v, i: fb.reduce_mean(m, 0, keepdims=True),
    "max of the last": lambda m, v, i: fb.reduce_max(m, -1),
    "variance of both": lambda m, v, i: fb.reduce_variance(m, [0, 1]),
    "softmax": lambda m, v, i: fb.nn.softmax(m) + fb.nn.log_softmax(m, 0),
    "cumulated": lambda m, v, i: fb.cumsum(m, 1),
    "sorted": lambda m, v, i: fb.sort(m, 0),
    "argmax": lambda m, v, i: fb.argmax(m, 1),
    "reshape": lambda m, v, i: fb.reshape(m, [4, -1]),
    "reshape as another": lambda m, v, i: fb.reshape(m, fb.shape(fb.transpose(m))),
    "transpose": lambda m, v, i: fb.transpose(m) + fb.transpose(m, [1, 0]),
    "expanded": lambda m, v, i: fb.squeeze(fb.expand_dims(m, 1)) + fb.expand_dims(v, -1)[:, 0],
    "squeezed by axis": lambda m, v, i: fb.squeeze(m[:1], 0),
    "concat": lambda m, v, i: fb.concat([m, fb.ones([2, 1], fb.float64)], 1),
    "stack": lambda m, v, i: fb.stack([v, fb.zeros([4], fb.float64)], 1),
    "split": lambda m, v, i: fb.split(m, 2, 1)[1] * fb.unstack(v)[2],
    "part": lambda m, v, i: m[1, ::2] + m[..., 1:3][0],
    "tile and pad": lambda m, v, i: fb.pad(fb.tile(m, [1, 2]), [[0, 1], [2, 0]]),
    "broadcast": lambda m, v, i: fb.broadcast_to(v, [3, 4]),
    "gather of one for all": lambda m, v, i: fb.gather(fb.constant(M), i),
    "gather by one for all": lambda m, v, i: fb.gather(m, [3, 0, 0], axis=1),
    "gather of each by each": lambda m, v, i: fb.gather(v, [i, 3]),
    "gather along another": lambda m, v, i: fb.gather(fb.constant(M), fb.minimum(i, 1), axis=1),
    "one hot": lambda m, v, i: fb.one_hot(i, 4) + fb.one_hot([0, 1], 4, axis=0)[:, :1],
    "added": lambda m, v, i: fb.add_n([v, m[0], fb.constant(W[:, 0])]),
    "of the last": lambda m, v, i: fb.nn.top_k(m, 2).values,
    "matrices": lambda m, v, i: fb.matrix_inverse(fb.matmul(m, m, transpose_b=True)),
    "rank": lambda m, v, i: m * fb.cast(fb.rank(m), fb.float64),
    "not of the element": lambda m, v, i: fb.constant(W) * 2.0,
    "nests": lambda m, v, i: {"a": (m, [v]), "b": i + 1},
}


@pytest.fixture(autouse=True)
def _alone():
    """A loop where none is expected fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", fb.errors.NotVectorizedWarning)
        yield


def elements(is_known: bool = True) -> tuple[Any, dict[Any, Any]]:
    count = COUNT if is_known else None
    m = fb.placeholder(fb.float64, [count, 2, 4])
    v = fb.placeholder(fb.float64, [count, 4])
    i = fb.placeholder(fb.int32, [count])
    return (m, v, i), {m: M, v: V, i: IDS}


def flat(structure: Any) -> list[Any]:
    if isinstance(structure, dict):
        structure = list(structure.values())
    if isinstance(structure, list | tuple):
        return [leaf for part in structure for leaf in flat(part)]
    return [structure]


def typed(structure: Any) -> Any:
    if isinstance(structure, dict):
        return {key: typed(part) for key, part in structure.items()}
    if isinstance(structure, list | tuple):
        return type(structure)([typed(part) for part in structure])
    return structure.dtype


def hold(function: Any, is_known: bool, further: Any = None) -> None:
    """Hold what is computed at once, and its gradients, against the loop; with further feeds."""
    elems, feeds = elements(is_known)
    feeds |= further or {}
    at_once = fb.vectorized_map(lambda e: function(*e), elems)
    looped = fb.map_fn(lambda e: function(*e), elems, typed(at_once))
    found, wanted = flat(at_once), flat(looped)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape.is_compatible_with(other.shape)
        assert one.shape.rank is not None
    for ys in (found, wanted):
        ys += [
            fb.zeros_like(x) if g is None else g + 0.0
            for x, g in zip(
                elems[:2],
                fb.gradients([fb.sin(y) for y in ys if y.dtype is fb.float64], elems[:2]),
                strict=True,
            )
        ]
    with fb.Session() as sess:
        for one, other in zip(*sess.run([found, wanted], feeds), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("form", FORMS)
def test_as_in_a_loop(form: str, is_known: bool) -> None:
    hold(FORMS[form], is_known)


# Functions of two matrices [4, 4].
STEPS: dict[str, Any] = {
    "add": lambda a, b: a + b[0],
    "tanh": lambda a, b: fb.tanh(a - b),
    "product": lambda a, b: fb.matmul(a, b) * 0.3,
    "weights": lambda a, b: fb.matmul(a, fb.constant(W @ W.T)) * 0.1,
    "transpose": lambda a, b: fb.transpose(b),
    "sum": lambda a, b: fb.reduce_sum(a, 0) - b,
    "mean": lambda a, b: fb.reduce_mean(a, -1, keepdims=True) * b,
    "softmax": lambda a, b: fb.nn.softmax(a, 0),
    "concat": lambda a, b: fb.concat([a[:2], b[2:]], 0),
    "reshape": lambda a, b: fb.reshape(fb.reshape(a, [2, 8])[:, ::-1], fb.shape(b)),
    "gather": lambda a, b: fb.gather(a, fb.argmax(b, 1)),
    "where": lambda a, b: fb.where(a > b[:, :1], a, b),
    "constant": lambda a, b: fb.constant(W @ W.T),
}
steps = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 2), st.integers(0, 2))


@settings(max_examples=25, deadline=None)
@given(st.lists(steps, min_size=1, max_size=6), st.booleans())
def test_drawn_functions_are_as_in_a_loop(program: list[Any], is_known: bool) -> None:
    def function(m: Any, v: Any, i: Any) -> Any:
        values = [
            fb.matmul(m, m, transpose_a=True),
            fb.expand_dims(v, 0) * v[:, None],
            m[0] + m[:1],
        ]
        values[2] = values[2] * fb.ones([4, 1], fb.float64)
        for place, (name, one, other) in enumerate(program):
            values[place % 3] = STEPS[name](values[one], values[other])
        return values

    with fb.Graph().as_default():
        hold(function, is_known)


def _of_rank_3(m: Any) -> Any:
    return fb.stack([m, m * 2.0, m[::-1]])


# Functions of a matrix [2, 4], an index and the axis, a tensor; and how many axes there are.
ALONG: dict[str, Any] = {
    "sum": (lambda m, i, axis: fb.reduce_sum(m, axis), 2),
    "max": (lambda m, i, axis: fb.reduce_max(m, axis, keepdims=True) * m, 2),
    "variance": (lambda m, i, axis: fb.reduce_variance(_of_rank_3(m), axis), 3),
    "logsumexp": (lambda m, i, axis: fb.reduce_logsumexp(m, axis), 2),
    "argmin": (lambda m, i, axis: fb.argmin(m, axis), 2),
    "cumsum": (lambda m, i, axis: fb.cumsum(m, axis, reverse=True), 2),
    "reverse": (lambda m, i, axis: fb.reverse(m, axis), 2),
    "expand": (lambda m, i, axis: fb.expand_dims(m, axis), 3),
    "transpose": (lambda m, i, axis: fb.transpose(m[0], axis), 1),
    "squeeze": (lambda m, i, axis: fb.squeeze(m[:1, None, :1], axis), 3),
    "concat": (lambda m, i, axis: fb.concat([m, fb.constant(M[0]), m], axis), 2),
    "split": (lambda m, i, axis: fb.split(m, 2, axis), 2),
    "gather": (lambda m, i, axis: fb.gather(m, [1, 0, 0], axis=axis), 2),
    "gather by each": (
        lambda m, i, axis: fb.gather(fb.constant(M), fb.minimum(i, 1), axis=axis),
        3,
    ),
    "gather of each by each": (
        lambda m, i, axis: fb.gather(m, [[fb.minimum(i, 1)], [0]], axis=axis),
        2,
    ),
}


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(sorted(ALONG)), st.integers(-3, 2), st.booleans())
def test_along_an_axis_that_the_run_knows_it_is_as_in_a_loop(
    name: str, place: int, is_known: bool
) -> None:
    function, count = ALONG[name]
    with fb.Graph().as_default():
        axis = fb.placeholder(fb.int32, [])
        hold(
            lambda m, v, i: function(m, i, axis),
            is_known,
            {axis: (place + 3) % (2 * count) - count},
        )


# Functions of three dimensions and several axes.
ALONG_SEVERAL: dict[str, Any] = {
    "sum": lambda m, axes: fb.reduce_sum(m, axes, keepdims=True) * m,
    "reverse": fb.reverse,
    "transpose": fb.transpose,
    "mean": lambda m, axes: fb.reshape(fb.reduce_mean(m, axes, keepdims=True), [-1, 1, 1]),
}


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(ALONG_SEVERAL)), st.permutations(range(3)), st.data())
def test_along_several_axes_that_the_run_knows_it_is_as_in_a_loop(
    name: str, order: list[int], data: Any
) -> None:
    most = 3 if name == "transpose" else data.draw(st.integers(0, 3))
    places = [place - 3 * data.draw(st.booleans()) for place in order[:most]]
    size = data.draw(st.sampled_from([most, None]))
    with fb.Graph().as_default():
        axes = fb.placeholder(fb.int64, [size])
        hold(lambda m, v, i: ALONG_SEVERAL[name](_of_rank_3(m), axes), True, {axes: places})


@pytest.mark.parametrize("name", ALONG)
def test_what_is_no_axis_of_an_element_is_refused_in_the_run(name: str) -> None:
    function, count = ALONG[name]
    (m, _, i), feeds = elements()
    axis = fb.placeholder(fb.int32, [])
    found = fb.vectorized_map(lambda e: function(*e, axis), (m, i))
    with fb.Session() as sess:
        for wrong in (-count - 1, count):
            with pytest.raises(fb.errors.InvalidArgumentError, match=r"axis|dimension"):
                sess.run(found, {m: feeds[m], i: feeds[i], axis: wrong})


def test_an_axis_of_each_element_is_a_loop() -> None:
    m, axes = fb.constant(M), fb.constant([0, 1, -1])
    with pytest.warns(fb.errors.NotVectorizedWarning, match="CumsumAt"):
        found = fb.vectorized_map(lambda e: fb.cumsum(*e), (m, axes))
    with fb.Session() as sess:
        wanted = [part.cumsum(axis) for part, axis in zip(M, (0, 1, -1), strict=True)]
        np.testing.assert_allclose(sess.run(found), wanted)


def test_a_users_rule_is_used_along_a_tensor_if_it_says_so() -> None:
    def define(type: str, **facts: Any) -> Any:
        def build(batch: Any, op: fb.Operation, inputs: Any) -> Any:
            axis = batch.shifted(op.attributes["axis"])
            return batch.again(op, [inputs[0].tensor], axis=axis)

        return fb.OpDef(
            type,
            "x: T -> y: T",
            T=fb.FLOATS,
            attributes={"by": 1, "axis": 0},
            infer=lambda x, **_: x.shape,
            kernel=lambda xp, x, by, axis: xp.roll(x, by, axis),
            batching=Batching(build, **facts),
            axis="axis",
        )

    axis = fb.placeholder(fb.int32, [])
    one, other = define("OwnTurnAlong", takes_tensors=True), define("OwnTurnAlongNone")
    found = [fb.vectorized_map(lambda m: one(m, 2, axis) + one(m, 1, -1), fb.constant(M))]
    with pytest.warns(
        fb.errors.NotVectorizedWarning, match="OwnTurnAlongNoneAt.*takes_tensors=True"
    ):
        found.append(
            fb.vectorized_map(lambda m: other(m, 2, axis) + other(m, 1, -1), fb.constant(M))
        )
    with fb.Session() as sess:
        for place in (0, -1):
            wanted = np.roll(M, 2, place + 1 if place >= 0 else place) + np.roll(M, 1, -1)
            for result in sess.run(found, {axis: place}):
                np.testing.assert_array_equal(result, wanted)


def test_variables_are_read_and_made_once() -> None:
    table = fb.Variable(V)
    calls = []

    def function(i: Any) -> Any:
        calls.append(i)
        w = fb.Variable(2.0, dtype=fb.float64)
        return fb.gather(table, i) * w + fb.gather(table, [0, i])

    found = fb.vectorized_map(function, fb.constant(IDS))
    wanted = V[IDS][:, None] * 2 + np.stack([V[[0, i]] for i in IDS])
    with fb.Session() as sess:
        np.testing.assert_allclose(sess.run(found), wanted)
    assert len(calls) == 1
    assert len(fb.get_default_graph().variables()) == 2


LOOPS = {
    "RandomUniform": lambda x: fb.random_uniform([2]) * 0.0 + x,
    "AssignAdd": lambda x: (fb.assign_add(fb.Variable(0.0), 1.0), x + 1.0)[1],
    "TensorDot": lambda x: fb.tensordot(x, x, 1),
}


@pytest.mark.parametrize("operation", LOOPS)
def test_what_has_no_form_for_all_is_a_loop_which_is_said(operation: str) -> None:
    x = fb.placeholder(fb.float32, [None, 2])
    with pytest.warns(fb.errors.NotVectorizedWarning, match=rf"loops over .*: {operation} '.*line"):
        found = fb.vectorized_map(LOOPS[operation], x)
    [slope] = fb.gradients(found, [x])
    value = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    wanted = {"RandomUniform": value, "AssignAdd": value + 1, "TensorDot": (value**2).sum(1)}
    with fb.Session() as sess:
        result, slopes = sess.run([found, slope], {x: value})
    np.testing.assert_allclose(result, wanted[operation])
    np.testing.assert_allclose(slopes, 2 * value if operation == "TensorDot" else np.ones((3, 2)))


def test_loops_and_branches_stay_a_loop() -> None:
    x = fb.constant([1.0, -2.0])
    with pytest.warns(fb.errors.NotVectorizedWarning, match="Switch"):
        found = fb.vectorized_map(lambda e: fb.cond(e > 0, lambda: e, lambda: -e), x)
    with fb.Session() as sess:
        assert sess.run(found).tolist() == [1, 2]


def test_in_loops_functions_and_each_other() -> None:
    x = fb.constant(V)

    @fb.function
    def outer(x: Any, factor: Any) -> Any:
        return fb.vectorized_map(lambda row: fb.vectorized_map(lambda e: e * factor, row), x)

    once = outer(x, 2.0)
    _, looped = fb.while_loop(
        lambda i, x: i < 3, lambda i, y: (i + 1, fb.vectorized_map(lambda r: r + y[0], y)), (0, x)
    )
    wanted = V
    for _ in range(3):
        wanted = wanted + wanted[0]
    with fb.Session() as sess:
        np.testing.assert_allclose(sess.run(once), V * 2)
        np.testing.assert_allclose(sess.run(looped), wanted)


def test_no_elements_and_what_cannot_be() -> None:
    x = fb.placeholder(fb.float32, [None, 2])
    sums = fb.vectorized_map(lambda row: fb.reduce_sum(row) + fb.ones([3]), x)
    with fb.Session() as sess:
        assert sess.run(sums, {x: np.zeros((0, 2))}).shape == (0, 3)
    with pytest.raises(fb.errors.InvalidTypeError, match="fn is a function"):
        fb.vectorized_map(None, x)
    with pytest.raises(fb.errors.InvalidArgumentError, match="elems is a scalar"):
        fb.vectorized_map(lambda e: e, fb.constant(1.0))


def test_a_users_operation_says_itself_how_it_is_built_for_all() -> None:
    def define(type: str, kernel: Any, **facts: Any) -> Any:
        facts = {"attributes": {"axis": 0}, **facts}
        return fb.OpDef(
            type, "x: T -> y: T", T=fb.FLOATS, infer=lambda x, **_: x.shape, kernel=kernel, **facts
        )

    def build(batch: Any, op: fb.Operation, inputs: Any) -> Any:
        return batch.again(op, [-inputs[0].tensor], axis=op.attributes["axis"] + 1)

    flip = Batching(build)
    forms = {
        "OwnHalf": define("OwnHalf", lambda xp, x: x / 2, batching=Batching.ELEMENTWISE),
        "OwnTurn": define(
            "OwnTurn",
            lambda xp, x: xp.flip(x, -1),
            batching=Batching.LEADING,
            attributes={},
        ),
        "OwnRoll": define(
            "OwnRoll",
            lambda xp, x, axis: xp.roll(x, 1, axis),
            batching=Batching.ALONG_AXIS,
        ),
        "OwnFlip": define("OwnFlip", lambda xp, x, axis: -xp.flip(x, axis), batching=flip),
    }
    x = fb.constant(M)
    found = fb.vectorized_map(lambda m: [form(m) for form in forms.values()], x)
    wanted = [M / 2, M[..., ::-1], np.roll(M, 1, 1), M[:, ::-1]]
    with fb.Session() as sess:
        for one, other in zip(sess.run(found), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def test_shapes_that_broadcast_make_a_users_operation_not_elementwise() -> None:
    centred = fb.OpDef(
        "OwnCentred",
        "x: T, y: T -> z: T",
        T=fb.FLOATS,
        infer=broadcast_inputs,
        kernel=lambda xp, x, y: x + y - xp.mean(x + y),
    )
    x = fb.constant(M)
    with pytest.warns(fb.errors.NotVectorizedWarning, match=r"OwnCentred.*batching="):
        found = fb.vectorized_map(lambda m: centred(m, m), x)
    wanted = 2 * (M - M.mean((1, 2), keepdims=True))
    with fb.Session() as sess:
        np.testing.assert_allclose(sess.run(found), wanted, rtol=1e-5, atol=1e-5)
