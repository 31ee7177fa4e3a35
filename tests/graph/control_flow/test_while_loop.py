"""`while_loop`: as plain Python's loops; what does not fit is refused by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import flowbook as fb


@dataclasses.dataclass
class State:
    count: Any
    total: Any


def run(fetches: Any, feeds: Any = None) -> Any:
    with fb.Session() as sess:
        first = sess.run(fetches, feeds)
        assert repr(sess.run(fetches, feeds)) == repr(first)
        return first


@pytest.mark.parametrize("trips", [0, 1, 7])
def test_counts(trips: int) -> None:
    n = fb.placeholder(fb.int32, [])
    i, total = fb.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t + i), (0, 0))
    assert run((i, total), {n: trips}) == (trips, sum(range(trips)))


@pytest.mark.parametrize("parallel", [1, 2, 10])
def test_in_each_other(parallel: int) -> None:
    def body(i: Any, t: Any) -> Any:
        _, t = fb.while_loop(
            lambda j, _: j < i,
            lambda j, t: (j + 1, t + i * j),
            (0, t),
            parallel_iterations=parallel,
        )
        return i + 1, t

    _, total = fb.while_loop(lambda i, _: i < 6, body, (0, 0), parallel_iterations=parallel)
    assert run(total) == sum(i * j for i in range(6) for j in range(i))


def test_one_after_the_other() -> None:
    [n] = fb.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    [m] = fb.while_loop(lambda i: i < n * 2, lambda i: i + 1, [0])
    assert run([n, m]) == [3, 6]


def test_a_branch_in_a_loop_and_a_loop_in_a_branch() -> None:
    x = fb.placeholder(fb.int32, [])

    def body(i: Any, t: Any) -> Any:
        def looped() -> Any:
            return fb.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t * 2 + x), (0, t))[1]

        return i + 1, fb.cond(fb.equal(i % 2, 0), looped, lambda: t - 1)

    _, total = fb.while_loop(lambda i, _: i < 6, body, (0, 1))
    wanted = 1
    for i in range(6):
        if i % 2:
            wanted -= 1
        else:
            for _ in range(i):
                wanted = wanted * 2 + 3
    assert run(total, {x: 3}) == wanted


def test_structures_and_dtypes() -> None:
    first = {"state": State(0, fb.constant(0.0, fb.float64)), "text": ("", [np.int64(1)])}

    def body(state: Any) -> Any:
        inner = state["state"]
        text, [number] = state["text"]
        return {
            "text": (fb.strings.join([text, "a"]), [number * 2]),
            "state": State(inner.count + 1, inner.total + 0.5),
        }

    last = fb.while_loop(lambda state: state["state"].count < 3, body, first)
    assert isinstance(last["state"], State)
    found = run({"total": last["state"].total, "text": last["text"]})
    assert found == {"total": 1.5, "text": (b"aaa", [8])}


def test_sparse_variables() -> None:
    sparse = fb.SparseTensor([[0, 0]], [1.0], [2, 2])
    _, last = fb.while_loop(
        lambda i, _: i < 3, lambda i, s: (i + 1, fb.sparse.map_values(fb.add, s, 1.0)), (0, sparse)
    )
    assert run(fb.sparse.to_dense(last)).tolist() == [[4, 0], [0, 0]]


def test_shape_invariants() -> None:
    i, grown = fb.while_loop(
        lambda i, t: i < 3,
        lambda i, t: (i + 1, fb.concat([t, t], 0)),
        (0, fb.ones([2, 3])),
        shape_invariants=(None, [None, 3]),
    )
    assert grown.shape.as_list() == [None, 3]
    assert i.shape.rank == 0
    assert run(grown).shape == (16, 3)


@pytest.mark.parametrize("limit", [0, 4, fb.placeholder])
def test_maximum_iterations(limit: Any) -> None:
    given = fb.placeholder(fb.int64, []) if limit is fb.placeholder else limit
    [last] = fb.while_loop(lambda i: i < 100, lambda i: i + 1, [0], maximum_iterations=given)
    found = run(last, {given: 4} if limit is fb.placeholder else None)
    assert found == (0 if limit == 0 else 4)


def test_a_single_variable() -> None:
    count = {"cond": lambda i: i < 3, "body": lambda i: i + 1}
    assert run(fb.while_loop(**count, loop_vars=[0])) == [3]
    assert run(fb.while_loop(**count, loop_vars=[0], return_same_structure=False)) == 3
    assert run(fb.while_loop(**count, loop_vars=fb.constant(0))) == 3


def test_reads_see_the_write_of_the_iteration_before() -> None:
    v = fb.Variable(1.0)

    def body(i: Any, seen: Any) -> Any:
        seen = seen + v  # What it is before this iteration's write.
        fb.assign(v, v * 2.0)
        return i + 1, seen

    _, seen = fb.while_loop(lambda i, _: i < 4, body, (0, 0.0))
    before = v + 0.0
    with fb.Session() as sess:
        assert sess.run([seen, before]) == [1 + 2 + 4 + 8, 1]
        assert sess.run(v) == 16
        assert sess.run([seen, before]) == [16 + 32 + 64 + 128, 16]


def test_a_write_that_nothing_depends_on_runs_in_each_iteration() -> None:
    v = fb.Variable(0)
    [n] = fb.while_loop(lambda i: i < 5, lambda i: (fb.assign_add(v, i), i + 1)[1], [0])
    with fb.Session() as sess:
        assert sess.run(n) == 5
        assert sess.run(v) == 10


def test_writes_in_branches_of_a_body() -> None:
    v = fb.Variable(0)

    def body(i: Any) -> Any:
        fb.cond(fb.equal(i % 3, 0), lambda: fb.assign(v, v * 10 + i), lambda: fb.assign_add(v, 1))
        return i + 1

    [n] = fb.while_loop(lambda i: i < 7, body, [0])
    with fb.Session() as sess:
        sess.run(n)
        wanted = 0
        for i in range(7):
            wanted = wanted * 10 + i if i % 3 == 0 else wanted + 1
        assert sess.run(v) == wanted


def test_python_functions_run_in_order() -> None:
    seen: list[int] = []

    def body(i: Any) -> Any:
        [done] = fb.py_func(lambda i: seen.append(int(i)) or np.int32(i), [i], [fb.int32])
        return fb.reshape(done, []) + 1

    [n] = fb.while_loop(lambda i: i < 6, body, [0], parallel_iterations=4)
    with fb.Session() as sess:
        for _ in range(2):
            seen.clear()
            assert sess.run(n) == 6
            assert seen == [0, 1, 2, 3, 4, 5]


def test_draws_repeat_with_a_seed() -> None:
    def drawn() -> list[list[float]]:
        with fb.Graph().as_default():
            fb.set_random_seed(3)
            _, t = fb.while_loop(
                lambda i, _: i < 3,
                lambda i, t: (i + 1, fb.concat([t, fb.random_uniform([1])], 0)),
                (0, fb.zeros([0])),
                shape_invariants=(None, [None]),
            )
            with fb.Session() as sess:
                return [sess.run(t).tolist() for _ in range(3)]

    found = drawn()
    assert found == drawn()
    assert len({number for row in found for number in row}) == 9


def test_variables_are_made_outside() -> None:
    def body(i: Any) -> Any:
        return i + fb.cast(fb.Variable(lambda: fb.ones([]), name="step"), fb.int32)

    assert run(fb.while_loop(lambda i: i < 5, body, [0])) == [5]
    with pytest.raises(fb.errors.InvalidArgumentError, match="give a function that builds it"):
        fb.while_loop(lambda i: i < 5, lambda i: i + fb.Variable(i), [0])


def test_what_is_waited_for_outside() -> None:
    v = fb.Variable(0.0)
    write = fb.assign(v, 5.0)
    with fb.control_dependencies([write]):
        _, t = fb.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t + v), (0, 0.0))

    def waits(i: Any, t: Any) -> Any:
        with fb.control_dependencies([write]):
            return i + 1, t + v

    _, u = fb.while_loop(lambda i, _: i < 3, waits, (0, 0.0))
    assert run(t) == 15
    assert run(u) == 15


def test_constants_and_placeholders_are_fed() -> None:
    two = fb.constant(2)
    x = fb.placeholder(fb.int32, [])
    _, t = fb.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t * two + x), (0, 1))
    assert run(t, {x: 0}) == 8
    assert run(t, {x: 1, two: 3}) == 27 + 9 + 3 + 1


def test_by_hand() -> None:
    flow = fb.control_flow
    i = flow.enter(0, "loop", parallel_iterations=3)
    n = flow.enter(fb.placeholder(fb.int32, [], name="n") + 0, "loop", is_constant=True)
    merge = flow.merge([i])
    no, yes = flow.switch(merge.output, flow.loop_cond(merge.output < n))
    flow.next_iteration(yes + 1, merge)
    assert run(flow.exit(no), {"n:0": 5}) == 5


def test_many_iterations() -> None:
    [n] = fb.while_loop(lambda i: i < 10_000, lambda i: i + 1, [0])
    assert run(n) == 10_000


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        (lambda i, t: (i + 1,), fb.errors.InvalidArgumentError, "body a tuple of 1"),
        (lambda i, t: (i + 1, {"t": t}), fb.errors.InvalidTypeError, r"a dict .*|at \[1\]"),
        (lambda i, t: (i + 1, fb.cast(t, fb.int32)), fb.errors.InvalidTypeError, "gives int32"),
        (lambda i, t: (i + 1, None), fb.errors.InvalidTypeError, "gives no value"),
        (lambda i: i + 1, fb.errors.InvalidTypeError, "the loop's 2 variables"),
        (
            lambda i, t: (i + 1, fb.concat([t, t], 0)),
            fb.errors.InvalidArgumentError,
            r"variable \[1\] \('ones:0'\) has the shape \[2\], but its body gives \[4\]",
        ),
    ],
)
def test_bodies_that_do_not_fit(body: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fb.while_loop(lambda i, t: i < 3, body, (0, fb.ones([2])))


@pytest.mark.parametrize(
    ("cond", "error", "message"),
    [
        (lambda i: i, fb.errors.InvalidTypeError, "gives int32"),
        (lambda i: [i < 3, i < 4], fb.errors.InvalidTypeError, "bool"),
        (lambda i, j: i < 3, fb.errors.InvalidTypeError, "the loop's 1 variable:"),
        (True, fb.errors.InvalidTypeError, r"(?s)a function of .*fb\.while_loop\(cond, body"),
    ],
)
def test_conditions_that_do_not_fit(cond: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fb.while_loop(cond, lambda i: i + 1, [0])


@pytest.mark.parametrize(
    ("first", "following", "shape", "written"),
    [
        ([2, 3], lambda t: fb.concat([t, t], 0), [4, 3], r"\[None, 3\]"),
        ([2], fb.reduce_sum, [], r"fb\.Shape\(\)"),
        ([2], lambda t: fb.py_func(abs, [t], [fb.float32])[0], None, "ensure_shape"),
    ],
)
def test_how_an_invariant_is_written(
    first: list[int], following: Any, shape: list[int] | None, written: str
) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=written) as caught:
        fb.while_loop(lambda t: fb.reduce_any(t < 9.0), lambda t: following(t), [fb.ones(first)])
    assert f"its body gives {fb.Shape(shape)}" in str(caught.value)


def test_a_constant_condition_says_so() -> None:
    with pytest.warns(fb.errors.ConstantConditionWarning, match="the loop never ends") as caught:
        fb.while_loop(lambda i: True, lambda i: i + 1, [0])
    assert caught[0].filename == __file__
    with pytest.warns(fb.errors.ConstantConditionWarning, match="the body never runs"):
        [n] = fb.while_loop(lambda i: fb.constant(False), lambda i: i + 1, [0])
    assert run(n) == 0
    [n] = fb.while_loop(lambda i: True, lambda i: i + 1, [0], maximum_iterations=3)
    assert run(n) == 3


def test_arguments_that_do_not_fit() -> None:
    def loop(**arguments: Any) -> None:
        fb.while_loop(**{"cond": lambda i: i < 3, "body": lambda i: i + 1, **arguments})

    with pytest.raises(fb.errors.InvalidArgumentError, match="at least one variable"):
        loop(loop_vars=[])
    with pytest.raises(fb.errors.InvalidArgumentError, match="at least one iteration"):
        loop(loop_vars=[0], parallel_iterations=0)
    with pytest.raises(fb.errors.InvalidTypeError, match="maximum_iterations is an int32"):
        loop(loop_vars=[0], maximum_iterations=2.5)
    with pytest.raises(fb.errors.InvalidArgumentError, match="begins with the shape"):
        loop(loop_vars=[fb.ones([2])], shape_invariants=[[3]])
    with pytest.raises(fb.errors.InvalidArgumentError, match="the structure of loop_vars"):
        loop(loop_vars=[0], shape_invariants=[None, None])
    sparse = fb.SparseTensor([[0, 0]], [1.0], [2, 2])
    with pytest.raises(
        fb.errors.InvalidArgumentError,
        match=r"SparseTensor \[0\] is of indices, values, dense_shape",
    ):
        loop(loop_vars=[sparse], shape_invariants=[[2, 2]])
    with pytest.raises(fb.errors.InvalidTypeError, match=r"variable \[1\] begins with nothing"):
        loop(loop_vars=[0, None])


def test_what_is_inside_stays_there() -> None:
    inside: list[fb.Tensor] = []
    [n] = fb.while_loop(lambda i: i < 3, lambda i: inside.append(i * 2) or i + 1, [0])
    with pytest.raises(fb.errors.InvalidArgumentError, match="inside of the loop 'while'"):
        fb.negative(inside[0])
    with fb.Session() as sess:
        with pytest.raises(fb.errors.InvalidArgumentError, match="cannot be fetched"):
            sess.run(inside[0])
        with pytest.raises(fb.errors.InvalidArgumentError, match="cannot be run"):
            sess.run(inside[0].op)
        with pytest.raises(fb.errors.InvalidArgumentError, match="cannot be fed"):
            sess.run(n, {inside[0]: 3})


def test_two_frames_in_one_operation() -> None:
    one, other = fb.control_flow.enter(1, "one"), fb.control_flow.enter(1, "other")
    with pytest.raises(fb.errors.InvalidArgumentError, match="in the loop 'one', and 'Enter_1:0'"):
        fb.add(one, other)
    with pytest.raises(fb.errors.InvalidArgumentError, match="is in no loop"):
        fb.control_flow.exit(fb.constant(1) + 1)


def grown(sparse: Any) -> Any:
    """A sparse tensor with its elements twice, the second time doubled."""
    twice = fb.SparseTensor(sparse.indices, sparse.values * 2.0, sparse.dense_shape)
    return fb.sparse.concat(0, [sparse, twice])


@pytest.mark.parametrize("invariant", [None, fb.Shape([2]), [2], fb.Shape([None])])
def test_the_elements_of_a_sparse_tensor_may_become_more(invariant: Any) -> None:
    sparse = fb.SparseTensor([[0, 1]], [1.0], [1, 3])
    n = fb.placeholder(fb.int32, [])
    given = None if invariant is None else (None, {"rows": invariant})
    _, last = fb.while_loop(
        lambda i, _: i < n,
        lambda i, s: (i + 1, {"rows": grown(s["rows"])}),
        (0, {"rows": sparse}),
        given,
    )
    rank = 2 if invariant != [None] else None
    assert last["rows"].indices.shape == [None, rank]
    with fb.Session() as sess:
        found = sess.run(last["rows"], {n: 2})
    assert found.values.tolist() == [1, 2, 2, 4]
    assert found.dense_shape.tolist() == [4, 3]


@pytest.mark.parametrize("invariant", [None, fb.Shape([None, 2]), [None, 2]])
def test_the_rows_of_slices_may_become_more(invariant: Any) -> None:
    slices = fb.IndexedSlices(fb.ones([1, 2]), fb.constant([0]), fb.constant([3, 2]))

    def body(i: Any, s: Any) -> Any:
        values = fb.concat([s.values, s.values * 2.0], 0)
        return i + 1, fb.IndexedSlices(values, fb.concat([s.indices, [2]], 0), s.dense_shape)

    _, last = fb.while_loop(lambda i, _: i < 1, body, (0, slices), (None, invariant))
    assert last.values.shape == [None, 2]
    with fb.Session() as sess:
        assert sess.run(fb.convert_to_tensor(last)).tolist() == [[1, 1], [0, 0], [2, 2]]


def test_what_an_invariant_of_a_sparse_tensor_does_not_admit() -> None:
    sparse = fb.SparseTensor([[0, 1]], [1.0], [1, 3])
    with pytest.raises(fb.errors.InvalidArgumentError, match="does not admit"):
        fb.while_loop(lambda s: True, lambda s: s, [sparse], [fb.Shape([3])])
