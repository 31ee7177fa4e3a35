"""Signatures that add to earlier ones: what first runs prepare, and that nothing else differs."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import flowbook as fb
from flowbook.exec import master
from flowbook.exec.engine import extension
from tests.exec.random_graphs import examples


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many operations each preparation went through."""
    monkeypatch.setattr(extension, "LEAST_NODES", 3)
    sizes: list[int] = []

    def counted(*args: Any) -> Any:
        found = master_prepare(*args)
        sizes.append(len(found.pruned))
        return found

    master_prepare = master.prepare
    monkeypatch.setattr(master, "prepare", counted)
    return sizes


@pytest.fixture
def sess() -> Iterator[fb.Session]:
    with fb.Session() as sess:
        yield sess


def chain(x: Any, length: int = 20) -> Any:
    for _ in range(length):
        x = fb.maximum(x, fb.constant(-1, x.dtype))
    return x


def test_what_was_added_alone_is_prepared(sess: fb.Session, prepared: list[int]) -> None:
    x = fb.placeholder(fb.float32, [2])
    y = chain(x)
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    sess.run(y, feeds)
    assert prepared == [40]
    ends = [y]
    for turn in range(5):
        ends.append(fb.add(ends[-1], 1.0))
        assert sess.run(ends[-1], feeds).tolist() == [2.0 + turn, 3.0 + turn]
    assert prepared == [40, 2, 2, 2, 2, 2]
    # Fetched beside it; and what takes two ways.
    z = fb.add(ends[-1], fb.exp(ends[-1]) * 0.0)
    assert [v.tolist() for v in sess.run([z, ends[-1]], feeds)] == [[6.0, 7.0]] * 2
    assert prepared[6:] == [4]
    # Who comes back has all of it prepared, once.
    for _ in range(3):
        assert sess.run(ends[-1], feeds).tolist() == [6.0, 7.0]
    assert prepared[7:] == [50]


def test_steps_do_not_follow_one_another_for_ever(
    sess: fb.Session, prepared: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension, "MOST_STEPS", 3)
    y = chain(fb.random_normal([2], seed=3))
    for _ in range(7):
        sess.run(y)
        y = fb.negative(y)
    assert [size > 10 for size in prepared] == [True, False, False] * 2 + [True]


def test_writes_happen_once(sess: fb.Session, prepared: list[int]) -> None:
    counter = fb.Variable(0.0)
    y = chain(fb.assign_add(counter, 1.0))
    assert sess.run(y) == 1.0
    count = len(prepared)
    assert sess.run(fb.add(y, 0.5)) == 2.5
    assert sess.run(counter) == 2.0
    assert prepared[count] == 2


@pytest.mark.parametrize(
    "case",
    [
        "random",
        "read",
        "write",
        "control",
        "other feeds",
        "part",
        "target",
        "late",
        "settled",
        "shared",
    ],
)
def test_what_is_prepared_as_a_whole(sess: fb.Session, prepared: list[int], case: str) -> None:
    variable = fb.Variable(1.0)
    x = fb.placeholder_with_default(fb.constant([1.0, 2.0]), [2])
    y = chain(x)
    other = fb.negative(chain(x, 2))
    feeds: dict[Any, Any] = {x: np.array([1.0, 2.0], np.float32)}
    fetched: Any = y
    if case == "part":
        fetched = [y, other]
    if case == "target":
        fetched = [y, other.op]
    if case == "settled":
        y = fetched = chain(fb.rank(x), 12)
    sess.run(variable)
    sess.run(fetched, feeds)
    new = fb.add(y, 1) if case == "settled" else fb.add(y, 1.0)
    match case:
        case "random":
            new = new + fb.random_uniform([2])
        case "read":
            new = new + variable
        case "write":
            new = fb.assign(fb.Variable([0.0, 0.0]), new)
        case "control":
            with fb.control_dependencies([other.op]):
                new = fb.add(y, 1.0)
        case "shared":
            new = new + y.op.inputs[0]
        case "other feeds":
            feeds[other] = feeds[x]
        case "settled":
            new = fb.reduce_sum(fb.ones([2, 3]), fb.rank(x) - 1) + fb.cast(y, fb.float32)
    prepared.clear()
    if case == "late":
        step = sess.partial_run([new], [x])
        step.run([new], feeds)
    else:
        sess.run(new, feeds)
    assert max(prepared) > 10


def test_an_error_names_the_new_operation(sess: fb.Session, prepared: list[int]) -> None:
    x = fb.placeholder(fb.int32, [])
    y = chain(x)
    assert sess.run(y, {x: 7}) == 7
    picked = fb.gather([1, 2, 3], y, name="picked")
    with pytest.raises(fb.errors.OpError, match="'picked'"):
        sess.run(picked, {x: 7})
    assert sess.run(fb.gather([1, 2, 3], y), {x: 2}) == 3
    assert all(size < 6 for size in prepared[1:])


def test_a_session_that_was_closed_keeps_nothing(sess: fb.Session, prepared: list[int]) -> None:
    sess.run(chain(fb.random_normal([2])))
    kept = sess._master._extensions
    assert kept._ready
    sess.close()
    assert not kept._ready


def values_of(example: Any, signatures: Any, least: int) -> list[Any]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(extension, "LEAST_NODES", least)
        with fb.Session(example.graph) as sess:
            found = [sess.run(fetches, feeds) for fetches, feeds in signatures]
            found.append([sess.run(v) for v in example.graph.variables()])
    return [np.copy(v) for values in found for v in values if v is not None]


@settings(max_examples=100)
@given(examples(feed_variables=True))
def test_values_and_variables_are_the_same(example: Any) -> None:
    signatures = []
    with example.graph.as_default():
        for fetches, feeds in example.steps:
            ends = [t for t in fetches if isinstance(t, fb.Tensor)]
            signatures.append((ends, feeds))
            for _ in range(3):
                ends = [fb.identity(t) + t for t in ends]
                signatures.append((ends, feeds))
            signatures.append((ends, feeds))
    found, expected = (values_of(example, signatures, least) for least in (0, 1 << 30))
    assert [v.tobytes() for v in found] == [v.tobytes() for v in expected]
