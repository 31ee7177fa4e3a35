"""`cond`: one side runs, with all that it does; what does not fit is refused by name."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import flowbook as fb


class Pair(NamedTuple):
    one: Any
    other: Any


@pytest.fixture
def x() -> fb.Tensor:
    return fb.placeholder(fb.float32, [], name="x")


def test_takes_one_side(x: fb.Tensor) -> None:
    y = fb.cond(x > 0, lambda: fb.log(x), lambda: x * 2.0)
    with fb.Session() as sess:
        for _ in range(2):
            assert sess.run(y, {x: 1.0}) == 0
            assert sess.run(y, {x: -3.0}) == -6


def test_only_the_taken_side_acts_where_it_waits_before(x: fb.Tensor) -> None:
    v, queue = fb.Variable(0), fb.FIFOQueue(10, fb.int32, shapes=[[]])

    def taken() -> fb.Tensor:
        with fb.control_dependencies([queue.dequeue()]):
            return fb.assign_add(v, 10)

    y = fb.cond(x > 0, taken, lambda: fb.assign_add(v, 1))
    with fb.Session() as sess:
        for number in range(3):
            sess.run(queue.enqueue(number))
        for at, wanted, left in ((-1.0, 1, 3), (1.0, 11, 2), (-1.0, 12, 2), (-1.0, 13, 2)):
            assert sess.run(y, {x: at}) == wanted
            assert sess.run([v, queue.size()]) == [wanted, left]


def test_only_the_taken_side_acts(x: fb.Tensor) -> None:
    v = fb.Variable(0.0)
    # The result depends on neither write.
    y = fb.cond(
        x > 0,
        lambda: (fb.assign_add(v, 1.0), x)[1],
        lambda: (fb.assign_sub(v, 10.0), x)[1],
    )
    with fb.Session() as sess:
        for at, wanted in ((1.0, 1.0), (2.0, 2.0), (-1.0, -8.0)):
            assert sess.run(y, {x: at}) == at
            assert sess.run(v) == wanted


def test_operations_and_nothing(x: fb.Tensor) -> None:
    v = fb.Variable(1.0)
    run = fb.cond(x > 0, lambda: fb.assign(v, 2.0).op, lambda: None)
    assert isinstance(run, fb.Operation)
    with fb.Session() as sess:
        assert sess.run(run, {x: -1.0}) is None
        assert sess.run(v) == 1
        sess.run(run, {x: 1.0})
        assert sess.run(v) == 2


def test_nested_results(x: fb.Tensor) -> None:
    y = fb.cond(
        x > 0,
        lambda: {"a": Pair(x, 1), "b": [True]},
        lambda: {"b": [False], "a": Pair(-x, 2)},
    )
    assert isinstance(y["a"], Pair)
    with fb.Session() as sess:
        assert sess.run(y, {x: -3.0}) == {"a": Pair(3, 2), "b": [False]}


@pytest.mark.parametrize("at", [-1.0, 1.0])
def test_every_dtype_goes_through(x: fb.Tensor, at: float) -> None:
    made = {
        dtype: fb.constant(np.ones([2]).astype(dtype.numpy), dtype)
        for dtype in (*fb.VALUES, *fb.SMALL)
        if dtype is not fb.string
    }
    made[fb.string] = fb.constant([b"a", b"b"])
    y = fb.cond(x > 0, lambda: list(made.values()), lambda: [fb.identity(t) for t in made.values()])
    with fb.Session() as sess:
        found = sess.run(y, {x: at})
        for value, (dtype, tensor) in zip(found, made.items(), strict=True):
            assert value.dtype == dtype.numpy
            assert value.tolist() == sess.run(tensor).tolist()


def test_sparse_results(x: fb.Tensor) -> None:
    sparse = fb.SparseTensor([[0, 1]], [3.0], [2, 2])
    y = fb.cond(x > 0, lambda: sparse, lambda: fb.SparseTensor([[1, 0], [1, 1]], [x, x], [2, 2]))
    with fb.Session() as sess:
        assert sess.run(fb.sparse.to_dense(y), {x: 1.0}).tolist() == [[0, 3], [0, 0]]
        assert sess.run(fb.sparse.to_dense(y), {x: -1.0}).tolist() == [[0, 0], [-1, -1]]


def test_in_each_other(x: fb.Tensor) -> None:
    y = fb.cond(
        x > 0,
        lambda: fb.cond(x > 10, lambda: x * 100.0, lambda: x),
        lambda: fb.cond(x < -10, lambda: x * 1000.0, lambda: -x),
    )
    with fb.Session() as sess:
        assert [sess.run(y, {x: at}) for at in (20.0, 2.0, -2.0, -20.0)] == [2000, 2, 2, -20000]


def test_a_variable_is_read_where_it_is_used(x: fb.Tensor) -> None:
    v = fb.Variable(1.0)

    def writes() -> Any:
        with fb.control_dependencies([fb.assign(v, 5.0)]):
            return v + 0.0

    y = fb.cond(x > 0, writes, lambda: v + 0.0)
    with fb.Session() as sess:
        assert sess.run(y, {x: -1.0}) == 1
        assert sess.run(y, {x: 1.0}) == 5
        assert sess.run([y, v], {x: -1.0, v: 7.0}) == [7, 7]


def test_predicate_can_be_fed(x: fb.Tensor) -> None:
    pred = x > 0
    y = fb.cond(pred, lambda: 1, lambda: 2)
    with fb.Session() as sess:
        assert sess.run(y, {pred: False}) == 2
        assert sess.run(y, {pred: True}) == 1


def test_constant_predicate_says_so() -> None:
    with pytest.warns(
        fb.errors.ConstantConditionWarning, match="only true_fn will ever run"
    ) as told:
        y = fb.cond(True, lambda: 1, lambda: 2)
    assert told[0].filename == __file__
    with pytest.warns(fb.errors.ConstantConditionWarning, match="only false_fn will ever run"):
        z = fb.cond(fb.constant(False), lambda: 1, lambda: 2)
    with fb.Session() as sess:
        assert sess.run([y, z]) == [1, 2]


def test_control_dependencies_stay_outside(x: fb.Tensor) -> None:
    v = fb.Variable(0.0)
    with fb.control_dependencies([fb.assign(v, 3.0)]):
        y = fb.cond(x > 0, lambda: v + 0.0, lambda: fb.constant(0.0))
    with fb.Session() as sess:
        assert sess.run(y, {x: 1.0}) == 3
        assert sess.run(v) == 3


def test_what_is_dead_is_not_fetched(x: fb.Tensor) -> None:
    sides = fb.control_flow.switch(x, x > 0)
    with fb.Session() as sess:
        assert sess.run(sides.output_true, {x: 1.0}) == 1
        with pytest.raises(fb.errors.InvalidArgumentError, match="branch that was not taken"):
            sess.run(sides.output_true * 2.0, {x: -1.0})


def test_a_control_edge_from_what_is_dead_kills(x: fb.Tensor) -> None:
    v = fb.Variable(0.0)
    sides = fb.control_flow.switch(x, x > 0)
    with fb.control_dependencies([fb.identity(sides.output_true)]):
        write = fb.assign_add(v, 1.0)
    with fb.control_dependencies([write]):
        after = fb.control_flow.control_trigger()
    with fb.Session() as sess:
        sess.run(after, {x: -1.0})
        assert sess.run(v) == 0
        sess.run(after, {x: 1.0})
        assert sess.run(v) == 1


def test_what_sees_dead_ends_may_wait_for_both_branches(x: fb.Tensor) -> None:
    written = [fb.Variable(0.0), fb.Variable(0.0)]
    sides = fb.control_flow.switch(x, x > 0)
    writes = [fb.assign_add(v, side) for v, side in zip(written, sides, strict=True)]
    with fb.control_dependencies(writes):
        after = fb.control_flow.control_trigger()
    with fb.Session() as sess:
        sess.run(after, {x: -1.0})
        sess.run(after, {x: 3.0})
        assert sess.run(written) == [-1, 3]
    with fb.control_dependencies(writes), pytest.raises(fb.errors.InvalidArgumentError):
        fb.no_op()


def test_merge_tells_which(x: fb.Tensor) -> None:
    no, yes = fb.control_flow.switch(x, x > 0)
    merged = fb.control_flow.merge([no * 2.0, yes * 3.0])
    with fb.Session() as sess:
        assert sess.run(list(merged), {x: 1.0}) == [3, 1]
        assert sess.run(list(merged), {x: -1.0}) == [-2, 0]


@pytest.mark.parametrize(
    ("true_fn", "false_fn", "error", "message"),
    [
        (lambda: 1.0, lambda: 2, fb.errors.InvalidTypeError, "float32, but false_fn int32"),
        (
            lambda: (1, 2),
            lambda: [1, 2],
            fb.errors.InvalidTypeError,
            "tuple of 2, but false_fn a l",
        ),
        (
            lambda: {"a": (1, 2)},
            lambda: {"a": (1, 2, 3)},
            fb.errors.InvalidArgumentError,
            "a tuple of 2 at \\['a'\\], but false_fn a tuple of 3",
        ),
        (lambda: {"a": 1}, lambda: {"b": 1}, fb.errors.InvalidArgumentError, "the keys 'b'"),
        (lambda: None, lambda: 1, fb.errors.InvalidTypeError, "but true_fn gives none"),
        (lambda: (None, 1), lambda: (None, 1), fb.errors.InvalidTypeError, "nothing at \\[0\\]"),
        (1.0, lambda: 1.0, fb.errors.InvalidTypeError, "a function that builds the branch"),
        (lambda: 1.0, lambda a: a, fb.errors.InvalidTypeError, "false_fn .* argument: 'a'"),
    ],
)
def test_sides_that_differ(
    x: fb.Tensor, true_fn: Any, false_fn: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        fb.cond(x > 0, true_fn, false_fn)


@pytest.mark.parametrize(
    ("pred", "error", "message"),
    [
        (1.0, fb.errors.InvalidTypeError, "float32, not bool"),
        ([True, False], fb.errors.InvalidArgumentError, "is no scalar"),
    ],
)
def test_what_is_no_predicate(pred: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fb.cond(fb.constant(pred), lambda: 1, lambda: 2)


def test_predicate_that_turns_out_no_scalar() -> None:
    p = fb.placeholder(fb.bool, None)
    y = fb.cond(p, lambda: 1, lambda: 2)
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError, match="no scalar"):
        sess.run(y, {p: [True]})


def test_what_is_inside_stays_there(x: fb.Tensor) -> None:
    inside: list[fb.Tensor] = []
    fb.cond(x > 0, lambda: inside.append(fb.sin(x)) or x, lambda: x)
    with pytest.raises(fb.errors.InvalidArgumentError, match="inside of a branch") as caught:
        fb.negative(inside[0])
    assert "cond/Sin" in str(caught.value)
    assert "test_cond.py" in str(caught.value)


def test_opposite_sides_are_never_both_there(x: fb.Tensor) -> None:
    no, yes = fb.control_flow.switch(x, x > 0)
    with pytest.raises(fb.errors.InvalidArgumentError, match="opposite sides"):
        fb.add(no, yes)


def test_a_branch_does_not_use_the_other_one(x: fb.Tensor) -> None:
    inside: list[fb.Tensor] = []

    def true_fn() -> fb.Tensor:
        inside.append(fb.log(x))
        return inside[0]

    with pytest.raises(
        fb.errors.InvalidArgumentError, match="'cond/Log:0' is inside of the other branch"
    ):
        fb.cond(x > 0, true_fn, lambda: inside[0] + 1.0)


def test_gradients_are_taken_of_what_is_outside(x: fb.Tensor) -> None:
    inside: list[fb.Tensor] = []
    fb.cond(x > 0, lambda: inside.append(fb.sin(x)) or x, lambda: x)
    fb.while_loop(lambda i: i < 3.0, lambda i: inside.append(i * x) or i + 1.0, [0.0])
    for tensor, where in zip(inside, ("inside of a branch", "inside of the loop"), strict=True):
        with pytest.raises(fb.errors.InvalidArgumentError, match=where):
            fb.gradients(tensor, x)


def test_what_a_branch_assigns_is_initialised_all_the_same(x: fb.Tensor) -> None:
    v = fb.Variable(1.0)
    y = fb.cond(x > 0, lambda: fb.assign(v, 5.0), lambda: fb.assign_add(v, 1.0))
    with fb.Session() as sess:
        assert sess.run(y, {x: -1.0}) == 2


@pytest.mark.parametrize("within", ["cond", "while_loop"])
def test_what_acts_on_a_side_built_by_hand_within_a_branch_or_a_loop(
    x: fb.Tensor, within: str
) -> None:
    flow = fb.control_flow
    v = fb.Variable(0.0)

    def chosen() -> fb.Tensor:
        no, yes = flow.switch(x, x > 1.0)
        with fb.control_dependencies([fb.identity(yes)]):
            written = fb.assign_add(v, 1.0)
        return flow.merge([no, written]).output

    if within == "cond":
        y = fb.cond(x > 0, chosen, lambda: fb.constant(7.0))
    else:
        y = fb.while_loop(lambda i, _: i < 1, lambda i, _: (i + 1, chosen()), (0, 0.0))[1]
    with fb.Session() as sess:
        for at, wanted in ((0.5, 0.5), (2.0, 1.0), (0.5, 0.5), (2.0, 2.0)):
            assert sess.run(y, {x: at}) == wanted
        assert sess.run(v) == 2
