"""Gradients of branches and loops, held against the same programs unrolled.

A program is drawn: statements on three numbers, with branches and loops in each other. It is built
once with `cond` and `while_loop`, and once straight, as the values decide; both are differentiated,
twice. What they compute in between is the same, and so are the gradients, but for rounding.
"""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb

VARIABLES = 3

# Each as tensors and as numbers compute it; none grows much. `w` makes its value where it is used.
OPERATIONS: dict[str, tuple[Any, Any]] = {
    "add": (lambda a, b, x, w: a + b * x, lambda a, b, x, w: a + b * x),
    "multiply": (
        lambda a, b, x, w: fb.tanh(a * b) * w(),
        lambda a, b, x, w: math.tanh(a * b) * w(),
    ),
    "sine": (lambda a, b, x, w: fb.sin(a) - b, lambda a, b, x, w: math.sin(a) - b),
    "input": (lambda a, b, x, w: fb.tanh(a) + x, lambda a, b, x, w: math.tanh(a) + x),
    "variable": (lambda a, b, x, w: fb.cos(b) * w(), lambda a, b, x, w: math.cos(b) * w()),
    "constant": (lambda a, b, x, w: fb.constant(0.5, fb.float64), lambda a, b, x, w: 0.5),
    "copy": (lambda a, b, x, w: b, lambda a, b, x, w: b),
}

places = st.integers(0, VARIABLES - 1)
assignments = st.tuples(st.just("set"), places, st.sampled_from(sorted(OPERATIONS)), places, places)


def programs(depth: int) -> Any:
    """Lists of statements, nested so deep."""
    if not depth:
        return st.lists(assignments, min_size=1, max_size=3)
    inner = programs(depth - 1)
    branch = st.tuples(st.just("if"), places, places, inner, inner)
    loop = st.tuples(st.just("while"), st.integers(0, 3), places, inner)
    return st.lists(st.one_of(assignments, branch, loop), min_size=1, max_size=3)


def built(program: list[Any], state: list[Any], x: Any, w: Any, **options: Any) -> list[Any]:
    """The program with branches and loops that the run decides; with options of `while_loop`."""
    for statement in program:
        state = list(state)
        if statement[0] == "set":
            _, target, name, one, other = statement
            state[target] = OPERATIONS[name][0](state[one], state[other], x, w)
        elif statement[0] == "if":
            _, one, other, yes, no = statement
            state = fb.cond(
                state[one] < state[other],
                lambda state=state, yes=yes: built(yes, state, x, w, **options),
                lambda state=state, no=no: built(no, state, x, w, **options),
            )
        else:
            _, count, watched, body = statement

            def goes_on(i: Any, state: Any, count: int = count, watched: int = watched) -> Any:
                return fb.logical_and(i < count, state[watched] < 1.5)

            _, state = fb.while_loop(
                goes_on,
                lambda i, state, body=body: (i + 1, built(body, state, x, w, **options)),
                (0, state),
                **options,
            )
    return state


def straight(program: list[Any], state: list[Any], x: Any, w: Any) -> list[Any]:
    """The program as its values decide: of each variable a tensor and a number."""
    for statement in program:
        state = list(state)
        if statement[0] == "set":
            _, target, name, one, other = statement
            tensor, number = (
                compute(state[one][i], state[other][i], x[i], w[i])
                for i, compute in enumerate(OPERATIONS[name])
            )
            state[target] = tensor, number
        elif statement[0] == "if":
            _, one, other, yes, no = statement
            state = straight(yes if state[one][1] < state[other][1] else no, state, x, w)
        else:
            _, count, watched, body = statement
            for _ in range(count):
                if not state[watched][1] < 1.5:
                    break
                state = straight(body, state, x, w)
    return state


def close(found: Any, wanted: Any) -> bool:
    return bool(np.allclose(found, wanted, rtol=1e-7, atol=1e-9))


def zeros_for(tensor: Any) -> Any:
    return fb.zeros([], fb.float64) if tensor is None else tensor


@settings(max_examples=20, deadline=None)
@given(programs(2), st.sampled_from([-1.3, -0.2, 0.4, 1.1]))
def test_gradients_are_those_of_the_unrolled_program(program: list[Any], at: float) -> None:
    with fb.Graph().as_default(), fb.Session() as sess:
        x = fb.placeholder(fb.float64, [], name="x")
        w = fb.Variable(0.7, dtype=fb.float64, name="w")
        first = [x, x * 0.5, fb.constant(0.25, fb.float64)]
        values = [at, at * 0.5, 0.25]
        pairs = list(zip(first, values, strict=True))
        loops = built(program, first, x, lambda: w)
        lines = straight(program, pairs, (x, at), (lambda: w, lambda: 0.7))
        found, wanted = [], []
        for totals, ys in ((found, loops), (wanted, [tensor for tensor, _ in lines])):
            loss = fb.add_n([fb.sin(y) for y in ys])
            first_order = [zeros_for(g) for g in fb.gradients(loss, [x, w])]
            second = fb.gradients(fb.add_n(first_order), [x, w])
            totals += [loss, *first_order, *map(zeros_for, second)]
        expected = sess.run(wanted, {x: at})
        for _ in range(2):  # By the state machine, and by what is written after it.
            assert close(sess.run(found, {x: at}), expected)


@settings(max_examples=20, deadline=None)
@given(programs(2), st.sampled_from([-1.3, -0.2, 0.4, 1.1]), st.booleans())
def test_rows_stay_rows(program: list[Any], at: float, is_variable: bool) -> None:
    numbers = np.array([0.3, 0.7, -0.4])
    with fb.Graph().as_default(), fb.Session() as sess:
        x = fb.placeholder(fb.float64, [], name="x")
        table = fb.Variable(numbers) if is_variable else fb.placeholder(fb.float64, [3])
        feeds = {x: at} if is_variable else {x: at, table: numbers}
        first = [x, x * 0.5, fb.constant(0.25, fb.float64)]
        pairs = list(zip(first, [at, at * 0.5, 0.25], strict=True))

        def row() -> Any:
            return fb.reduce_sum(fb.gather(table, [1, 1])) * 0.5

        loops = built(program, first, x, row)
        lines = straight(program, pairs, (x, at), (row, lambda: 0.7))
        found, wanted = [], []
        for totals, ys in ((found, loops), (wanted, [tensor for tensor, _ in lines])):
            [rows] = fb.gradients(fb.add_n([fb.sin(y) for y in ys]), [table])
            assert rows is None or isinstance(rows, fb.IndexedSlices)
            whole = whole_of(rows, table)
            [second] = fb.gradients(fb.reduce_sum(whole * whole), [table])
            totals += [whole, whole_of(second, table)]
        expected = sess.run(wanted, feeds)
        for _ in range(2):
            for one, other in zip(sess.run(found, feeds), expected, strict=True):
                assert close(one, other)


@settings(max_examples=20, deadline=None)
@given(programs(2), st.sampled_from([-1.3, -0.2, 0.4, 1.1]))
def test_what_is_computed_again_is_the_same(program: list[Any], at: float) -> None:
    with fb.Graph().as_default(), fb.Session() as sess:
        x = fb.placeholder(fb.float64, [], name="x")
        w = fb.Variable(0.7, dtype=fb.float64, name="w")
        found = []
        for recompute in (True, False):
            first = [x, x * 0.5, fb.constant(0.25, fb.float64)]
            ends = built(program, first, x, lambda: w, recompute=recompute)
            given = [
                zeros_for(g) for g in fb.gradients(fb.add_n([fb.sin(y) for y in ends]), [x, w])
            ]
            second = map(zeros_for, fb.gradients(fb.add_n(given), [x, w]))
            found.append((given, list(second)))
        for _ in range(2):
            again, kept = sess.run(found, {x: at})
            assert again[0] == kept[0]
            assert close(again[1], kept[1])


def whole_of(gradient: Any, like: Any) -> Any:
    return fb.zeros(like.shape, fb.float64) if gradient is None else fb.convert_to_tensor(gradient)


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_power(trips: int) -> None:
    x = fb.placeholder(fb.float64, [3])
    n = fb.placeholder(fb.int32, [])
    _, y = fb.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y * x), (0, fb.ones_like(x)))
    [dx] = fb.gradients(y, [x])
    at = np.array([0.5, 2.0, -1.0])
    with fb.Session() as sess:
        found = sess.run([y, zeros_for(dx)], {x: at, n: trips})
    assert close(found[0], at**trips)
    assert close(found[1], trips * at ** (trips - 1) if trips else np.zeros(3))


def test_only_what_the_gradients_need_is_kept() -> None:
    x = fb.placeholder(fb.float32, [100])
    _, y = fb.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y + x), (0, x))
    fb.gradients(y, [x])
    assert not [op for op in x.graph.operations if op.type == "StackPush"]


@pytest.mark.parametrize("imported", [False, True])
def test_recomputing_keeps_what_entered_and_what_was_drawn(imported: bool) -> None:
    size, trips = 100, 7

    def body(i: Any, t: Any) -> Any:
        u = fb.tanh(t * 2.0)
        u = fb.cond(fb.equal(i % 2, 0), lambda: fb.sin(u) * t, lambda: fb.exp(-u * u))
        return i + 1, fb.sigmoid(u) * t * fb.random_uniform([size], dtype=fb.float64, seed=3)

    found = []
    for recompute in (False, True):
        with fb.Graph().as_default() as graph:
            x = fb.placeholder(fb.float64, [size], name="x")
            _, y = fb.while_loop(lambda i, _: i < trips, body, (0, x), recompute=recompute)
            if imported:
                graph = fb.Graph.from_bytes(graph.to_bytes())
                x, y = (graph.get_tensor_by_name(t.name) for t in (x, y))
            with graph.as_default():
                [dx] = fb.gradients(y, [x])
                told = fb.forecast(dx, {x: (size,)}, trips=trips)
                with fb.Session() as sess:
                    runs = [sess.run(dx, {x: np.linspace(-1, 1, size)}) for _ in range(3)]
        found.append((told, runs))
    (kept, wanted), (again, given) = found
    np.testing.assert_array_equal(given, wanted)
    of_one = size * trips * 8
    # The variable, what was drawn, and the count.
    assert 2 * of_one <= again.stack_bytes < 2.1 * of_one
    assert kept.stack_bytes > 5 * of_one
    assert again.total.flops > kept.total.flops


def test_calls_are_in_loops_that_compute_again() -> None:
    @fb.function(inline=False)
    def grown(t: Any) -> Any:
        return fb.cond(t > 2.0, lambda: t * 3.0, lambda: fb.exp(t) * 3.0)

    x = fb.placeholder(fb.float64, [])
    ys = [
        fb.while_loop(
            lambda i, _: i < 3,
            lambda i, t: (i + 1, fb.sin(grown(fb.square(t)))),
            (0, x),
            recompute=recompute,
        )[1]
        for recompute in (False, True)
    ]
    firsts = [fb.gradients(y, x)[0] for y in ys]
    seconds = [fb.gradients(first, x)[0] for first in firsts]
    with fb.Session() as sess:
        for at in (0.3, 1.5, -2.0):
            for kept, again in sess.run([firsts, seconds], {x: at}):
                assert kept == pytest.approx(again, rel=1e-12)


@pytest.mark.parametrize("recompute", [False, True])
def test_products_of_small_factors_are_one_product(recompute: bool) -> None:
    """What a matrix of a recurrent network's gradient is the sum of."""
    random = np.random.default_rng(0)
    x = fb.placeholder(fb.float64, [2, 30])
    w = fb.Variable(random.normal(size=(30, 30)) / 5)
    n = fb.placeholder(fb.int32, [])
    kernel = fb.identity(w)

    def step(t: Any) -> Any:
        return fb.tanh(fb.matmul(t, kernel)) + x

    def body(i: Any, t: Any) -> Any:
        # A product in a branch is there in some iterations only.
        return i + 1, fb.cond(fb.equal(i, 2), lambda: step(t), lambda: t * 0.9) + step(t)

    _, y = fb.while_loop(lambda i, _: i < n, body, (0, x), recompute=recompute)
    found = fb.gradients(y, [x, w])
    found += fb.gradients(found[1], [w])
    at = random.normal(size=(2, 30))
    with fb.Session() as sess:
        for trips in (0, 4):
            t = x
            for i in range(trips):
                t = (step(t) if i == 2 else t * 0.9) + step(t)
            wanted = [whole_of(g, w) if g is None else g for g in fb.gradients(t, [x, w])]
            wanted += [whole_of(g, w) for g in fb.gradients(wanted[1], [w])]
            for _ in range(2):
                pairs = sess.run([found, wanted], {x: at, n: trips})
                for one, other in zip(*pairs, strict=True):
                    assert close(one, other)


@pytest.mark.parametrize("recompute", [False, True])
def test_the_factors_of_products_are_kept_unless_they_are_computed_again(recompute: bool) -> None:
    x, w = fb.placeholder(fb.float64, [2, 30]), fb.Variable(np.eye(30))
    kernel = fb.identity(w)
    _, y = fb.while_loop(
        lambda i, _: i < 4,
        lambda i, t: (i + 1, fb.tanh(fb.matmul(t, kernel))),
        (0, x),
        recompute=recompute,
    )
    (found,) = fb.gradients(y, [w])
    kept = [op for op in x.graph.operations if op.type == "TensorArrayWrite"]
    assert bool(kept) is not recompute
    t = x
    for _ in range(4):
        t = fb.tanh(fb.matmul(t, kernel))
    (wanted,) = fb.gradients(t, [w])
    with fb.Session() as sess:
        one, other = sess.run([found, wanted], {x: np.full((2, 30), 0.5)})
    assert close(one, other)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize(
    "fails",
    [
        lambda i: fb.floordiv(fb.constant(1), fb.constant(0)),
        lambda i: fb.floordiv(1, i - i),
        # In a branch of a branch: what comes in is of the outer one.
        lambda i: fb.cond(i > 100, lambda: fb.floordiv(fb.constant(1), fb.constant(0)), lambda: i),
    ],
    ids=["constants", "a variable", "a branch of a branch"],
)
def test_a_branch_that_is_not_taken_does_not_fail(
    fails: Callable[[Any], Any], recompute: bool
) -> None:
    t = fb.placeholder(fb.float64, [])
    is_taken = fb.placeholder(fb.int32, [])

    def body(i: Any, t: Any) -> Any:
        there = lambda: t * fb.cast(fails(i), fb.float64)  # noqa: E731
        return i + 1, fb.cond(fb.equal(i, is_taken), there, lambda: fb.sin(t) * 2.0)

    _, y = fb.while_loop(lambda i, _: i < 3, body, (0, t), recompute=recompute)
    (found,) = fb.gradients(y, [t])
    u = t
    for _ in range(3):
        u = fb.sin(u) * 2.0
    (wanted,) = fb.gradients(u, [t])
    with fb.Session() as sess:
        for _ in range(3):
            one, other = sess.run([found, wanted], {t: 0.3, is_taken: 7})
            assert close(one, other)


def test_a_long_body_is_computed_again() -> None:
    x = fb.placeholder(fb.float64, [])

    def body(i: Any, t: Any) -> Any:
        for _ in range(1000):
            t = fb.sin(t)
        return i + 1, t

    [again, kept] = [
        fb.gradients(fb.while_loop(lambda i, _: i < 2, body, (0, x), recompute=recompute)[1], [x])[
            0
        ]
        for recompute in (True, False)
    ]
    with fb.Session() as sess:
        found = sess.run([again, kept], {x: 1.0})
    assert found[0] == found[1] != 0


def test_arrays_and_loops_within_are_not_computed_again() -> None:
    x = fb.placeholder(fb.float64, [3, 2])

    def step(total: Any, row: Any) -> Any:
        _, inner = fb.while_loop(lambda j, _: j < 2, lambda j, t: (j + 1, t * total), (0, row))
        return fb.tanh(inner + total)

    found = [
        fb.gradients(fb.scan(step, x, fb.ones([2], fb.float64), recompute=recompute), [x])[0]
        for recompute in (True, False)
    ]
    at = np.arange(6.0).reshape(3, 2) / 7
    with fb.Session() as sess:
        for _ in range(2):
            again, kept = sess.run(found, {x: at})
            np.testing.assert_array_equal(again, kept)


def test_what_was_read_from_an_array_that_let_go_of_it_is_not_read_again() -> None:
    x = fb.placeholder(fb.float64, [3])
    found = []
    for recompute in (True, False):
        array = fb.TensorArray(fb.float64, 3).unstack(x)
        y = fb.while_loop(
            lambda i, _: i < 3,
            lambda i, y, array=array: (i + 1, fb.sin(y * array.read(i))),
            (0, fb.constant(1.0, fb.float64)),
            recompute=recompute,
        )[1]
        found += fb.gradients(y, [x])
    with fb.Session() as sess:
        for _ in range(2):
            again, kept = sess.run(found, {x: [0.5, -1.5, 2.0]})
            np.testing.assert_array_equal(again, kept)


def test_loops_in_loops_over_as_many_rows_as_there_are() -> None:
    """Of zeros that begin a gradient less is known than of what they are the gradient of."""
    x = fb.placeholder(fb.float64, [None, 2])

    def inner(y: Any, count: Any) -> Any:
        return fb.while_loop(lambda j, _: j < count, lambda j, z: (j + 1, fb.sin(z * x)), (0, y))[1]

    _, y = fb.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, inner(y, i)), (0, x))
    wanted = x
    for _ in range(3):
        wanted = fb.sin(wanted * x)
    feeds = {x: np.array([[0.5, 1.0], [2.0, 0.3]])}
    with fb.Session() as sess:
        for _ in range(2):
            found, right = sess.run([fb.gradients(y, x), fb.gradients(wanted, x)], feeds)
            np.testing.assert_allclose(found, right, rtol=1e-9)


def test_bytes_that_are_swapped_are_told() -> None:
    x = fb.placeholder(fb.float32, [100])
    for swap_memory in (False, True):
        _, y = fb.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, y * x), (0, x), swap_memory=swap_memory
        )
        told = fb.forecast(fb.gradients(y, [x]), {x: (100,)}, trips=3)
        assert told.stack_bytes == 1200
        assert told.swapped_bytes == (1200 if swap_memory else 0)
        assert ("host memory" in str(told)) is swap_memory


@pytest.mark.parametrize("is_variable", [True, False])
def test_rows_of_a_large_table_cost_nothing_of_its_size(is_variable: bool) -> None:
    """In a branch, in a loop and in both, for a step of training too."""
    numbers = np.ones((200_000, 8))
    table = fb.Variable(numbers) if is_variable else fb.placeholder(fb.float64, numbers.shape)
    ids = fb.placeholder(fb.int32, [None])

    def taken(i: Any) -> Any:
        return fb.reduce_sum(fb.gather(table, ids + i) ** 2)

    def body(i: Any, total: Any) -> Any:
        return i + 1, total + fb.cond(fb.equal(i, 1), lambda: total * 0.5, lambda: taken(i))

    _, total = fb.while_loop(lambda i, _: i < 4, body, (0, fb.zeros([], fb.float64)))
    total += fb.cond(total > 0, lambda: taken(0), lambda: total)
    [rows] = fb.gradients(total, [table])
    fetches = [rows]
    if is_variable:
        fetches.append(fb.train.GradientDescentOptimizer(0.0).minimize(total))
    feeds = {ids: np.array([3, 1, 3])} | ({} if is_variable else {table: numbers})
    with fb.Session() as sess:
        for _ in range(3):  # Until all of it is code.
            found = sess.run(fetches, feeds)[0]
        tracemalloc.start()
        try:
            sess.run(fetches, feeds)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < numbers.nbytes / 10
    assert fb.forecast(fetches, feeds).peak_bytes < numbers.nbytes / 10
    wanted, sums = np.zeros(8), np.zeros(8)
    for i, weight in ((0, 2.5), (2, 1), (3, 1)):  # The second iteration adds a half.
        wanted[np.array([3, 1]) + i] += np.array([4, 2]) * weight
    np.add.at(sums, found.indices, found.values[:, 0])
    assert close(sums, wanted)


def test_rows_by_indices_of_two_dtypes() -> None:
    table = fb.Variable(np.arange(6.0).reshape(3, 2))
    wide = fb.constant([1], fb.int64)
    loss = fb.reduce_sum(fb.gather(table, [0]) * fb.gather(table, wide))
    yes = fb.placeholder(fb.bool, [])
    loss += fb.cond(
        yes,
        lambda: fb.reduce_sum(fb.gather(table, [2])),
        lambda: fb.reduce_sum(fb.gather(table, wide)),
    )
    [g] = fb.gradients(loss, [table])
    assert isinstance(g, fb.IndexedSlices)
    whole = fb.convert_to_tensor(g)
    with fb.Session() as sess:
        assert close(sess.run(whole, {yes: True}), [[2, 3], [0, 1], [1, 1]])
        assert close(sess.run(whole, {yes: False}), [[2, 3], [1, 2], [0, 0]])


@pytest.mark.parametrize("shape", [[4, 2], [None, 2], [None, None], None], ids=str)
def test_rows_of_what_has_any_shape(shape: Any) -> None:
    table, n = fb.placeholder(fb.float64, shape), fb.placeholder(fb.int32, [])
    _, total = fb.while_loop(
        lambda i, _: i < n,
        lambda i, t: (i + 1, t + fb.reduce_sum(fb.gather(table, [i, 0]))),
        (0, fb.zeros([], fb.float64)),
    )
    total += fb.cond(n > 1, lambda: fb.reduce_sum(fb.gather(table, [3])), lambda: total)
    [g] = fb.gradients(total, [table])
    assert isinstance(g, fb.IndexedSlices)
    whole = fb.convert_to_tensor(g)
    with fb.Session() as sess:
        for trips, counts in ((0, [0, 0, 0, 0]), (1, [4, 0, 0, 0]), (3, [4, 1, 1, 1])):
            found = sess.run(whole, {table: np.ones((4, 2)), n: trips})
            assert close(found, np.transpose([counts, counts]))


def test_rows_of_what_a_branch_chose() -> None:
    one, other = fb.Variable(np.ones((3, 2))), fb.Variable(np.ones((5, 2)))
    yes = fb.placeholder(fb.bool, [])
    chosen = fb.cond(yes, lambda: one.as_tensor(False), lambda: other.as_tensor(False))
    found = fb.gradients(fb.reduce_sum(fb.gather(chosen, [2, 0, 2])), [one, other])
    assert all(isinstance(g, fb.IndexedSlices) for g in found)
    wholes = [fb.convert_to_tensor(g) for g in found]
    with fb.Session() as sess:
        for value, wanted in ((True, [[1, 0, 2], [0] * 5]), (False, [[0] * 3, [1, 0, 2, 0, 0]])):
            for whole, rows in zip(sess.run(wholes, {yes: value}), wanted, strict=True):
                assert close(whole, np.transpose([rows, rows]))


def test_slices_as_a_variable_of_a_loop() -> None:
    x = fb.placeholder(fb.float64, [2, 2])
    slices = fb.IndexedSlices(x, fb.constant([0, 2]), fb.constant([3, 2]))
    _, last = fb.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, s * 2.0), (0, slices))
    assert isinstance(last, fb.IndexedSlices)
    [dx] = fb.gradients(fb.reduce_sum(fb.square(fb.convert_to_tensor(last))), [x])
    with fb.Session() as sess:
        at = np.array([[1.0, 2.0], [3.0, 4.0]])
        assert close(sess.run(dx, {x: at}), 2 * 64 * at)


def test_rows_gathered_in_a_loop() -> None:
    table = fb.Variable(np.arange(6.0).reshape(3, 2), dtype=fb.float64)
    _, total = fb.while_loop(
        lambda i, _: i < 4,
        lambda i, total: (i + 1, total + fb.reduce_sum(fb.gather(table, i % 3) ** 2)),
        (0, fb.zeros([], fb.float64)),
    )
    [g] = fb.gradients(total, [table])
    assert isinstance(g, fb.IndexedSlices)
    with fb.Session() as sess:
        found = sess.run(fb.convert_to_tensor(g))
    assert close(found, 2 * np.arange(6.0).reshape(3, 2) * [[2], [1], [1]])


def test_shapes_that_change() -> None:
    x = fb.placeholder(fb.float64, [2])
    _, grown = fb.while_loop(
        lambda i, _: i < 2,
        lambda i, t: (i + 1, fb.concat([t, t * x[:1]], 0)),
        (0, x),
        shape_invariants=(None, [None]),
    )
    [dx] = fb.gradients(fb.reduce_sum(grown), [x])
    with fb.Session() as sess:
        # (a + b) (1 + a)^2
        assert close(sess.run(dx, {x: [2.0, 3.0]}), [9 + 5 * 2 * 3, 9])


def test_within_a_body() -> None:
    x = fb.placeholder(fb.float64, [])

    def body(i: Any, t: Any) -> Any:
        [g] = fb.gradients(t * t * x, [t])
        return i + 1, t - 0.1 * g

    _, t = fb.while_loop(lambda i, _: i < 3, body, (0, fb.constant(3.0, fb.float64)))
    with fb.Session() as sess:
        assert close(sess.run(t, {x: 2.0}), 3 * 0.6**3)


@pytest.mark.parametrize("depth", [1, 2])
def test_within_a_body_there_is_none_by_what_a_variable_began_as(depth: int) -> None:
    x = fb.placeholder(fb.float64, [], name="x")
    one = fb.constant(1, fb.int64)
    ways = {
        "through it": lambda t: fb.gradients(t * t * x, [x])[0],
        "stopped": lambda t: fb.gradients(fb.stop_gradient(t) ** 2 * x, [x])[0],
        "as a constant": lambda t: fb.gradients(t * t * x, [x], stop_gradients=[t])[0],
    }

    def built(way: Any) -> Any:
        def body(i: Any, t: Any) -> Any:
            if depth == 1:
                return i + 1, way(t)
            return i + 1, fb.while_loop(lambda j, _: j < 1, lambda j, _: (j + 1, way(t)), (0, t))[1]

        return fb.while_loop(lambda i, _: i < 3, body, (one, x + 1.0))[1]

    with fb.Session() as sess:
        # The square of what the iteration before gave: first 3, then 9.
        for name in ("stopped", "as a constant"):
            assert sess.run(built(ways[name]), {x: 2.0}) == 81
    with pytest.raises(fb.errors.InvalidArgumentError, match="which begins as 'Add") as caught:
        built(ways["through it"])
    assert "fb.stop_gradient(variable)" in str(caught.value)


def test_training_in_a_loop() -> None:
    w = fb.Variable(5.0)

    def body(i: Any) -> Any:
        step = fb.train.GradientDescentOptimizer(0.1).minimize(fb.square(w - 1.0))
        with fb.control_dependencies([step]):
            return i + 1

    [steps] = fb.while_loop(lambda i: i < 10, body, [0])
    with fb.Session() as sess:
        assert sess.run(steps) == 10
        assert sess.run(w) == pytest.approx(1 + 4 * 0.8**10)


def test_stop_gradient_inside() -> None:
    x = fb.placeholder(fb.float64, [])
    _, y = fb.while_loop(
        lambda i, _: i < 3, lambda i, y: (i + 1, y * x + fb.stop_gradient(y)), (0, x)
    )
    [dx] = fb.gradients(y, [x])
    with fb.Session() as sess:
        at, wanted, value = 1.5, 1.0, 1.5
        for _ in range(3):
            wanted, value = wanted * at + value, value * at + value
        assert close(sess.run(dx, {x: at}), wanted)


def test_of_a_loop_by_hand() -> None:
    flow = fb.control_flow
    x = fb.placeholder(fb.float64, [])
    merge = flow.merge([flow.enter(x, "loop")])
    sides = flow.switch(merge.output, flow.loop_cond(merge.output < 100.0))
    flow.next_iteration(sides.output_true * 3.0, merge)
    y = flow.exit(sides.output_false)
    [dx] = fb.gradients(y, [x])
    with fb.Session() as sess:
        assert sess.run([y, dx], {x: 2.0}) == [162.0, 81.0]


def test_of_a_loop_by_hand_that_ends_where_something_holds() -> None:
    flow = fb.control_flow
    x = fb.placeholder(fb.float64, [])
    merge = flow.merge([flow.enter(x, "loop")])
    sides = flow.switch(merge.output, flow.loop_cond(merge.output >= 100.0))
    flow.next_iteration(sides.output_false * sides.output_false, merge)
    y = flow.exit(sides.output_true)
    [dx] = fb.gradients(y, [x])
    [ddx] = fb.gradients(dx, [x])
    with fb.Session() as sess:
        for _ in range(2):
            assert sess.run([y, dx, ddx], {x: 2.0}) == [256.0, 8 * 2.0**7, 56 * 2.0**6]


def test_what_has_no_gradient_of_a_loop_by_hand_says_so() -> None:
    flow = fb.control_flow
    x = fb.placeholder(fb.float64, [])
    merge = flow.merge([flow.enter(x, "loop")])
    doubled = merge.output * 2.0
    holds = flow.loop_cond(merge.output < 100.0)
    sides, others = flow.switch(merge.output, holds), flow.switch(doubled, holds)
    flow.next_iteration(sides.output_true * 3.0, merge)
    for inside in (fb.square(sides.output_false), others.output_false):
        y = flow.exit(inside)
        with pytest.raises(fb.errors.InvalidArgumentError, match="is computed from its variables"):
            fb.gradients(y, [x])
    with pytest.raises(fb.errors.InvalidArgumentError, match="has no one condition"):
        fb.gradients(flow.exit(merge.output), [x])
    others = flow.switch(merge.output, merge.output < 50.0)
    ends = [flow.exit(sides.output_false), flow.exit(others.output_false)]
    with pytest.raises(fb.errors.InvalidArgumentError, match="has no one condition"):
        fb.gradients(ends, [x])


def test_with_respect_to_what_is_inside() -> None:
    inside = []

    def body(i: Any, t: Any) -> Any:
        inside.append(t * 2.0)
        return i + 1, inside[0]

    _, t = fb.while_loop(lambda i, _: i < 3, body, (0, 1.0))
    assert fb.gradients(t, inside) == [None]


def test_a_branch_gives_zeros_where_it_is_not_taken() -> None:
    x = fb.placeholder(fb.float64, [2])
    w = fb.Variable([1.0, 2.0], dtype=fb.float64)
    y = fb.cond(x[0] > 0, lambda: fb.reduce_sum(x * w), lambda: fb.reduce_sum(x))
    dx, dw = fb.gradients(y, [x, w])
    with fb.Session() as sess:
        assert close(sess.run([dx, dw], {x: [3.0, 4.0]}), [[1, 2], [3, 4]])
        assert close(sess.run([dx, dw], {x: [-3.0, 4.0]}), [[1, 1], [0, 0]])


def test_no_gradient_flows_where_none_is_wanted() -> None:
    x = fb.placeholder(fb.float64, [])
    _, y = fb.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * x), (0, x), back_prop=False)
    assert fb.gradients(y, [x]) == [None]
    [dx] = fb.gradients(y * x, [x])
    with fb.Session() as sess:
        assert sess.run([y, dx], {x: 2.0}) == [16, 16]


def on_two_devices(x: Any) -> Any:
    def body(i: Any, t: Any) -> Any:
        with fb.device("/cpu:0"):
            return i + 1, fb.tanh(t) * x

    with fb.device("/cpu:2"):
        return fb.while_loop(lambda i, _: i < 3, body, (0, x))[1]


def loop_on_another_device(x: Any) -> Any:
    def body(i: Any, t: Any) -> Any:
        with fb.device("/cpu:0"):
            return i + 1, fb.while_loop(
                lambda j, _: j < 2, lambda j, u: (j + 1, fb.tanh(u) * x), (0, t)
            )[1]

    with fb.device("/cpu:2"):
        return fb.while_loop(lambda i, _: i < 3, body, (0, x))[1]


def elements_on_another_device(x: Any) -> Any:
    def outer(v: Any) -> Any:
        with fb.device("/cpu:0"):
            return fb.reduce_sum(fb.map_fn(lambda u: u * v * v, x))

    with fb.device("/cpu:2"):
        return fb.map_fn(outer, x)


@pytest.mark.parametrize(
    "program", [on_two_devices, loop_on_another_device, elements_on_another_device]
)
def test_what_is_in_a_loop_may_ask_for_devices_of_its_own(program: Any) -> None:
    x = fb.placeholder(fb.float64, [3])
    [first] = fb.gradients(program(x), x)
    [second] = fb.gradients(first, x)
    feeds = {x: [0.5, -0.3, 1.2]}
    with fb.Session(cpus=3) as several, fb.Session(soft_placement=True) as one:
        wanted = one.run([first, second], feeds)
        for _ in range(2):
            for found, same in zip(several.run([first, second], feeds), wanted, strict=True):
                np.testing.assert_allclose(found, same, rtol=1e-12)


def test_twice_through_a_loop_in_a_branch_of_a_loop() -> None:
    x = fb.placeholder(fb.float64, [])

    def body(i: Any, t: Any) -> Any:
        def inner() -> Any:
            return fb.while_loop(lambda j, _: j < i, lambda j, u: (j + 1, u * x + t), (0, x))[1]

        return i + 1, fb.cond(fb.equal(i % 2, 1), inner, lambda: t * x)

    def value(x: float) -> float:
        t = x
        for i in range(4):
            u = x
            for _ in range(i):
                u = u * x + t
            t = u if i % 2 else t * x
        return t

    _, y = fb.while_loop(lambda i, _: i < 4, body, (0, x))
    [dx] = fb.gradients(y, [x])
    [ddx] = fb.gradients(dx, [x])
    with fb.Session() as sess:
        at, step = 1.1, 1e-4
        wanted = (value(at + step) - 2 * value(at) + value(at - step)) / step**2
        assert np.allclose(sess.run(ddx, {x: at}), wanted, rtol=1e-5)
