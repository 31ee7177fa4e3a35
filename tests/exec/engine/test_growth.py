"""Signatures that add to earlier ones: what first runs prepare, and that nothing else differs."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import flowbook as fb
from flowbook.exec import master
from flowbook.exec.plan import pipeline
from tests.exec.random_graphs import examples


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many operations each preparation went through."""
    monkeypatch.setattr(pipeline, "LEAST_TO_GROW", 3)
    sizes: list[int] = []

    def counted(signature: Any, devices: Any, base: Any = None) -> Any:
        found = grow(signature, devices, base)
        before = len(base.prepared.operations) if base is not None else 0
        sizes.append(len(found.prepared.operations) - before)
        return found

    grow = master.grow
    monkeypatch.setattr(master, "grow", counted)
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
        for _ in range(3):
            assert sess.run(ends[-1], feeds).tolist() == [2.0 + turn, 3.0 + turn]
    assert prepared == [40, 2, 2, 2, 2, 2]
    # Fetched beside it; what takes two ways; and what was fetched before, not any more.
    z = fb.add(ends[-1], fb.exp(ends[-1]) * 0.0)
    assert [v.tolist() for v in sess.run([z, ends[-1]], feeds)] == [[6.0, 7.0]] * 2
    inner = fb.add(z, ends[-1]) + ends[2]
    assert sess.run(inner, feeds).tolist() == [15.0, 18.0]
    assert prepared[6:] == [4, 2]


@pytest.mark.parametrize("beside", [False, True])
def test_one_operation_more_on_the_loss_of_a_training(
    sess: fb.Session, prepared: list[int], beside: bool
) -> None:
    x = fb.placeholder(fb.float32, [None, 3])
    W = fb.Variable(np.ones((3, 2), np.float32), name="W")
    loss = fb.reduce_mean(fb.square(chain(x @ W)))
    train = fb.train.AdamOptimizer(0.1).minimize(loss)
    feeds = {x: np.ones((4, 3), np.float32)}
    sess.run([train, loss], feeds)
    prepared.clear()
    more = fb.sqrt(loss) if beside else fb.sqrt(loss) + fb.random_uniform([])
    expected, _, found = sess.run([loss, train, more], feeds)
    assert 0 < sum(prepared) < 10
    assert np.sqrt(expected) <= found <= np.sqrt(expected) + 1
    assert sess.run(W).max() < 1.0


def test_writes_happen_once(sess: fb.Session, prepared: list[int]) -> None:
    counter = fb.Variable(0.0)
    y = chain(fb.assign_add(counter, 1.0))
    assert sess.run(y) == 1.0
    count = len(prepared)
    assert sess.run(fb.add(y, 0.5)) == 2.5
    assert sess.run(counter) == 2.0
    assert prepared[count] == 2


def test_a_new_operation_may_read_what_is_not_written_and_draw(
    sess: fb.Session, prepared: list[int]
) -> None:
    variable = fb.Variable(5.0)
    y = chain(fb.constant(1.0) + fb.random_uniform([], seed=1) * 0.0)
    sess.run([variable, y])
    prepared.clear()
    new = y + variable
    assert sess.run([new, variable]) == [6.0, 5.0]
    assert max(prepared) < 10


@pytest.mark.parametrize(
    "case",
    ["read", "write", "other feeds", "part", "late", "settled", "device"],
)
def test_what_is_prepared_as_a_whole(sess: fb.Session, prepared: list[int], case: str) -> None:
    variable = fb.Variable([1.0, 1.0])
    x = fb.placeholder_with_default(fb.constant([1.0, 2.0]), [2])
    y = chain(x)
    other = fb.negative(chain(x, 2))
    feeds: dict[Any, Any] = {x: np.array([1.0, 2.0], np.float32)}
    fetched: Any = y
    if case == "part":
        fetched = [y, other]
    if case == "read":
        fetched = [y, fb.assign_add(variable, y)]
    if case == "settled":
        y = fetched = chain(fb.rank(x), 12)
    sess.run(fetched, feeds)
    new = fb.add(y, 1) if case == "settled" else fb.add(y, 1.0)
    match case:
        case "read":
            # It sees the value from before the write that is there already.
            new = new + variable
        case "write":
            new = fb.assign(variable, new)
        case "other feeds":
            feeds[other] = feeds[x]
        case "settled":
            new = fb.reduce_sum(fb.ones([2, 3]), fb.rank(x) - 1) + fb.cast(y, fb.float32)
        case "device":
            with fb.device("cpu:0"):
                new = fb.negative(y)
    prepared.clear()
    if case == "late":
        step = sess.partial_run([new], [x])
        step.run([new], feeds)
    elif case == "read":
        # The same write, and a read of what it writes.
        before = sess.run(variable)
        found, _ = sess.run([new, fetched[1]], feeds)
        np.testing.assert_array_equal(found, np.array([2.0, 3.0]) + before)
    else:
        sess.run(new, feeds)
    assert max(prepared) > 10


def test_what_the_earlier_signature_does_not_compute_any_more(
    sess: fb.Session, prepared: list[int]
) -> None:
    """A value that was folded away, or passed on, is there for new operations all the same."""
    x = fb.placeholder(fb.float32, [2])
    folded = fb.constant([1.0, 2.0]) * 2.0
    passed = fb.identity(x)
    y = chain(passed + folded)
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    sess.run(y, feeds)
    assert sess.run(y + folded + passed, feeds).tolist() == [6.0, 12.0]


def test_an_error_names_the_new_operation(sess: fb.Session, prepared: list[int]) -> None:
    x = fb.placeholder(fb.int32, [])
    y = chain(x)
    assert sess.run(y, {x: 7}) == 7
    picked = fb.gather([1, 2, 3], y, name="picked")
    with pytest.raises(fb.errors.OpError, match="'picked'"):
        sess.run(picked, {x: 7})
    assert sess.run(fb.gather([1, 2, 3], y), {x: 2}) == 3
    assert all(size < 6 for size in prepared[1:])


def values_of(example: Any, signatures: Any, least: int) -> list[Any]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pipeline, "LEAST_TO_GROW", least)
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
            for turn in range(3):
                new = [fb.identity(t) + t for t in ends]
                ends = [*new, *ends] if turn % 2 else new
                signatures.append((ends, feeds))
            signatures += [(ends, feeds)] * 2
    found, expected = (values_of(example, signatures, least) for least in (0, 1 << 30))
    assert [v.tobytes() for v in found] == [v.tobytes() for v in expected]
