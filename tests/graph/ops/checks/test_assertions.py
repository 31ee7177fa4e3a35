"""Assertions: what they find, when, and what they say."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate

Error = fb.errors.InvalidArgumentError


def x_of(*shape: Any) -> fb.Tensor:
    return fb.placeholder(fb.float32, shape, name="x")


def test_assert_shows_its_data() -> None:
    x = x_of(None)
    check = fb.Assert(fb.reduce_all(x > 0.0), ["not positive:", x, fb.shape(x)])
    with fb.Session() as sess:
        sess.run(check, {x: [1.0]})
        for _ in range(2):
            with pytest.raises(Error, match=r"assertion failed: not positive: \[-1.0\] \[1\]"):
                sess.run(check, {x: [-1.0]})
        with pytest.raises(Error, match=r"0.0 0.0 0.0 ... 0.0"):
            sess.run(check, {x: np.zeros(1000)})
        sess.run(check, {x: [1.0]})


def test_what_waits_for_an_assertion_fails_with_it() -> None:
    x = x_of(None)
    with fb.control_dependencies([fb.assert_positive(x)]):
        y = fb.log(x)
    with fb.Session() as sess:
        assert sess.run(y, {x: [1.0]}) == 0
        with pytest.raises(Error, match=r"x > 0 does not hold.*\n.*x \(x:0\) = \[-1.0 2.0\]"):
            sess.run(y, {x: [-1.0, 2.0]})


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (lambda x: fb.assert_equal(x, [1.0, 2.0]), [1, 2], [1, 3]),
        (lambda x: fb.assert_equal(1.0, x), [1, 1], [1, 3]),
        (lambda x: fb.assert_none_equal(x, 3.0), [1, 2], [1, 3]),
        (lambda x: fb.assert_less(x, 3.0), [1, 2], [1, 3]),
        (lambda x: fb.assert_less_equal(x, 3.0), [1, 3], [1, 4]),
        (lambda x: fb.assert_greater(x, 3.0), [4, 5], [3, 5]),
        (lambda x: fb.assert_greater_equal(x, 3.0), [3, 5], [2, 5]),
        (lambda x: fb.assert_positive(x), [1, 2], [0, 2]),
        (lambda x: fb.assert_negative(x), [-1, -2], [-1, 0]),
        (lambda x: fb.assert_non_negative(x), [0, 1], [-1, 1]),
        (lambda x: fb.assert_non_positive(x), [0, -1], [0, 1]),
        (lambda x: fb.assert_near(x, 1.0), [1, 1 + 1e-6], [1, 1 + 1e-5]),
        (lambda x: fb.assert_near(x, 1.0, atol=0.5, rtol=0), [1, 1.4], [1, np.nan]),
    ],
    ids=count(),
)
def test_comparisons(check: Any, right: Any, wrong: Any) -> None:
    x = x_of(None)
    operation = check(x)
    assert isinstance(operation, fb.Operation)
    assert evaluate(operation, {x: right}) is None
    with pytest.raises(Error, match="assertion failed"):
        evaluate(operation, {x: wrong})


def test_what_is_known_is_decided_at_construction() -> None:
    x = x_of(3, None)
    for operation in (
        fb.assert_equal(fb.shape(x)[0], 3),
        fb.assert_less([1, 2], 3),
        fb.assert_equal(["a", "b"], ["a", "b"]),
        fb.assert_positive(2.5),
        fb.assert_rank(x, 2),
        fb.assert_rank_at_least(x, 1),
        fb.assert_rank_in(x, [1, 2]),
    ):
        assert operation.type == "NoOp"
    for wrong, message in (
        (lambda: fb.assert_equal(fb.shape(x)[0], 4, message="rows"), "rows: x == y .*3.*4"),
        (lambda: fb.assert_less([1, 5], 3), "x < y"),
        (lambda: fb.assert_less([1, 5], 3, data=["see", x]), "see x:0"),
        (lambda: fb.assert_negative(2), "x < 0"),
        (lambda: fb.assert_rank(x, 1, message="m"), "m: x:0 .* has not 1 dim"),
        (lambda: fb.assert_rank_at_least(x, 3), "at least 3"),
        (lambda: fb.assert_rank_in(x, [0, 1]), "0 or 1"),
        (lambda: fb.assert_scalar(x), "not known to be a scalar"),
        (lambda: fb.assert_type(x, fb.int32), "float32, not int32"),
        (lambda: fb.assert_integer(x), "not an integer"),
        (lambda: fb.assert_near([1], [1]), "floating-point"),
        (lambda: fb.assert_equal([1, 2], [1, 2, 3]), "broadcast"),
        (lambda: fb.Assert([True, False], []), "a scalar"),
        (lambda: fb.Assert(True, "text"), "a list"),
    ):
        with pytest.raises(Error, match=f"(?s){message}") as caught:
            wrong()
        assert "test_assertions.py" in str(caught.value)
    fb.assert_type(x, "float32")
    fb.assert_integer([1, 2])
    assert fb.assert_scalar(3.0).shape == []


def test_ranks_in_the_run() -> None:
    x = fb.placeholder(fb.float32, None, name="x")
    rank = fb.placeholder(fb.int32, [])
    for operation in (
        fb.assert_rank(x, 1),
        fb.assert_rank(x, rank),
        fb.assert_rank_at_least(x, 1),
        fb.assert_rank_in(x, [1, 5]),
    ):
        evaluate(operation, {x: [1.0], rank: 1})
        with pytest.raises(Error, match=r"dimensions but the shape \[\]"):
            evaluate(operation, {x: 1.0, rank: 1})


def test_names() -> None:
    x = x_of(2)
    assert fb.assert_positive(x, name="sign").name == "sign"
    assert fb.assert_positive(x).name == "assert_positive"
    assert fb.assert_rank(x, 1, name="r").name == "r"


def test_conditions_of_unknown_rank() -> None:
    condition = fb.placeholder(fb.bool)
    check = fb.Assert(condition, [])
    evaluate(check, {condition: True})
    with pytest.raises(Error, match="a scalar"):
        evaluate(check, {condition: [True]})


def test_the_rank_that_is_asked_for_is_a_scalar() -> None:
    for x in (x_of(None), fb.placeholder(fb.float32)):
        with pytest.raises(Error, match=r"a rank is a scalar, not of shape \[2\]"):
            fb.assert_rank(x, [1, 2])


FIT: dict[str, tuple[Any, list[Any]]] = {
    "numbers": ([(3, 4), ("3", None)], [(3, 4), (3, 9)]),
    "words": ([("N", "D"), ("D",)], [(3, 4), (4,)]),
    "twice": ([("N", "N")], [(2, 2)]),
    "scalar": ([()], [()]),
    "any rank": ([("*", "D"), (..., "D", "E")], [(4,), (5, 3, 4, 6)]),
    "any": ([(".", 2), [None, "N"]], [(7, 2), (7, 2)]),
    "shapes": ([fb.Shape([3, None]), fb.Shape()], [(3, 2), (1, 2, 3)]),
}
UNFIT = {
    "numbers": ([(3, 5), (3, 9)], r"x0:0 has the shape \[3, 5\], not \[3, 4\]"),
    "words": ([(3, 4), (5,)], r"x1:0 has the shape \[5\], not \[D\]: D is 4 in x0:0"),
    "twice": ([(2, 3)], r"not \[N, N\]: N is 2 in x0:0"),
    "scalar": ([(1,)], r"x0:0 has the shape \[1\], not \[\]"),
    "any rank": ([(4,), (4,)], r"x1:0 has the shape \[4\], not \[..., D, E\]"),
    "any": ([(7, 2), (7,)], r"x1:0 has the shape \[7\], not \[\?, N\]"),
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", FIT)
def test_shapes_that_fit_and_those_that_do_not(name: str, known: bool) -> None:
    wanted, given = FIT[name]

    def check(shapes: Any) -> tuple[fb.Operation, dict[Any, Any]]:
        xs = [
            fb.placeholder(fb.float32, s if known else None, name=f"x{k}")
            for k, s in enumerate(shapes)
        ]
        found = fb.assert_shapes(list(zip(xs, wanted, strict=True)), name="check")
        return found, {x: np.full(s, 7.0) for x, s in zip(xs, shapes, strict=True)}

    operation, feeds = check(given)
    assert operation.type == ("NoOp" if known else "AssertShapes")
    loaded = fb.Graph.from_bytes(operation.graph.to_bytes()).get_operation_by_name("check")
    with fb.Session() as sess, fb.Session(graph=loaded.graph) as again:
        for _ in range(2):
            assert sess.run(operation, feeds) is None
        assert again.run(loaded, {t.name: v for t, v in feeds.items()}) is None
    if name in UNFIT:
        shapes, message = UNFIT[name]
        with fb.Graph().as_default(), fb.Session() as sess:
            with pytest.raises(Error, match=message) as caught:
                sess.run(*check(shapes))
            assert "test_assertions.py, line" in str(caught.value)
            assert ("7.0" in str(caught.value)) is not known


def test_what_an_assertion_of_shapes_shows() -> None:
    x = x_of(None)
    check = fb.assert_shapes({x: (3,)}, data=["found", x[:1]], message="input")
    with pytest.raises(Error, match=r"failed: input: x:0 has the shape \[2\].*\nfound \[5.0\]"):
        evaluate(check, {x: [5.0, 6.0]})
    for shapes, message in (
        ({x: 3}, "a shape is a list of sizes, not 3"),
        ([x], "pairs of a tensor and its shape"),
        ({x: (1.5j,)}, "a size is an int, a string or None, not 1.5j"),
        ({x: (2, ...)}, "before the last dimensions only"),
    ):
        with pytest.raises(fb.errors.InvalidArgumentError, match=message):
            fb.assert_shapes(shapes)


def test_every_assertion_gives_an_operation_that_can_be_waited_for() -> None:
    x = fb.constant([1, 2])
    checks = [
        fb.assert_type(x, fb.int32),
        fb.assert_integer(x, name="whole"),
        fb.assert_positive(x),
        fb.assert_rank(x, 1),
        fb.assert_shapes([(x, [2])]),
    ]
    with fb.control_dependencies(checks):
        y = fb.identity(x)
    assert list(y.op.control_inputs) == checks
    assert checks[1].name == "whole"
    assert evaluate(y).tolist() == [1, 2]


def test_shapes_of_scalars_and_of_what_may_have_any() -> None:
    x, scalar = fb.placeholder(fb.float32), fb.placeholder(fb.float32)
    check = fb.assert_shapes([(x, None), (scalar, ())])
    with fb.Session() as sess:
        sess.run(check, {x: [[1.0]], scalar: 2.0})
        with pytest.raises(fb.errors.InvalidArgumentError, match=r"has the shape \[1\], not \[\]"):
            sess.run(check, {x: 1.0, scalar: [2.0]})
    with pytest.raises(fb.errors.InvalidTypeError, match="list of sizes, not 3") as caught:
        fb.assert_shapes([(x, 3)])
    assert "that of a scalar is ()" in str(caught.value)
