"""Where resources live, and what becomes of steps when one asks for a resource elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.simulated import Simulated

DEVICES = ["cpu:0", "cpu:1", "simulated:0"]


@pytest.fixture
def sess() -> Iterator[fb.Session]:
    with fb.Session(devices=DEVICES) as sess:
        yield sess


@pytest.fixture
def W() -> fb.Variable:
    return fb.Variable(np.arange(3.0, dtype=np.float32), name="W")


def gathered(variable: fb.Variable, device: str = "simulated:0") -> fb.Tensor:
    """The first row, from where the variable is to live."""
    with fb.device(device):
        return fb.gather(variable, 0)


def home(sess: fb.Session, variable: fb.Variable) -> str:
    return sess._master.stores.homes[variable.op.key].name.rpartition("device:")[2]


@pytest.mark.parametrize("runs", [1, 4])
def test_what_was_prepared_before_a_variable_goes_elsewhere_is_prepared_anew(
    sess: fb.Session, W: fb.Variable, runs: int
) -> None:
    changed, doubled = fb.assign_add(W, [1.0, 1.0, 1.0]), W * 2.0
    there, here = gathered(W), gathered(W, "cpu:0")
    expected = np.arange(3.0)
    for first, device in ((here, "cpu:0"), (there, "simulated:0"), (here, "cpu:0")):
        assert sess.run(first) == expected[0]
        assert home(sess, W) == device
        for _ in range(runs):
            value, twice = sess.run([W, doubled])
            assert isinstance(value, np.ndarray)
            np.testing.assert_array_equal(value, expected)
            np.testing.assert_array_equal(twice, 2.0 * expected)
            expected += 1.0
            np.testing.assert_array_equal(sess.run(changed), expected)


def test_what_goes_from_one_cpu_to_another_stays_prepared(sess: fb.Session, W: fb.Variable) -> None:
    rows = [gathered(W, "cpu:0"), gathered(W, "cpu:1")]
    sess.run([rows[0]]), sess.run([rows[1]])
    drops = sess._master.drops
    for row in (*rows, *rows):
        assert sess.run([row]) == [0.0]
    assert sess._master.drops == drops


def test_where_there_is_no_room_it_stays() -> None:
    W = fb.Variable(np.ones(1000, np.float32), name="W")
    row = gathered(W)
    with fb.Session(devices=["cpu:0", Simulated(0, memory_limit=2048)]) as sess:
        sess.replace({W: "cpu:0"})
        for _ in range(2):
            assert sess.run(fb.reduce_sum(W)) == 1000.0
            with pytest.raises(fb.errors.ResourceExhaustedError):
                sess.run(row)


def test_only_the_step_fails_that_asks_for_what_others_use_elsewhere(sess: fb.Session) -> None:
    with fb.container("shared_by_homes"):
        W = fb.Variable([1.0, 2.0], name="W")
    row = gathered(W)
    try:
        with fb.Session() as other:
            other.run(W)
        for _ in range(2):
            with pytest.raises(fb.errors.FailedPreconditionError, match="it is wanted on"):
                sess.run(row)
            assert sess.run(W * 1.0).tolist() == [1.0, 2.0]
    finally:
        fb.reset_container("shared_by_homes")


def test_an_initial_value_may_have_another_variable_go_elsewhere(
    sess: fb.Session, W: fb.Variable
) -> None:
    with fb.device("simulated:0"):
        later = fb.Variable(lambda: fb.gather(W, [0, 0, 0]), name="later")
    sess.run(gathered(W, "cpu:0"))
    # It writes what goes elsewhere while the other one is initialised.
    step = fb.group(fb.assign_add(W, [1.0, 1.0, 1.0]), fb.assign_add(later, [2.0, 2.0, 2.0]))
    with fb.device("cpu:0"):
        counted = fb.assign_add(fb.Variable(0, name="count"), 1)
    calls: list[int] = []
    sess.run([step, counted, fb.py_func(lambda: calls.append(1), [], [])])
    assert (home(sess, W), calls) == ("simulated:0", [1])
    assert [value.tolist() for value in sess.run([W, later])] == [[1.0, 2.0, 3.0], [2.0] * 3]


# While another step is under way


class Held:
    """A function in a step that waits, if it is told to, until something else has happened."""

    def __init__(self) -> None:
        self.then: Callable[[], Any] | None = None

    def __call__(self, value: Any) -> Any:
        then, self.then = self.then, None
        if then is not None:
            thread = threading.Thread(target=then)
            thread.start()
            thread.join(60)
            assert not thread.is_alive()
        return value


@pytest.mark.parametrize("runs", [1, 4])
@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_step_gives_arrays_of_numpy_though_it_read_elsewhere(
    sess: fb.Session, W: fb.Variable, runs: int, is_replaced: bool
) -> None:
    held = Held()
    first = fb.py_func(held, [0.0], fb.float32)
    with fb.control_dependencies([first.op]):
        late = fb.identity(fb.reshape(fb.identity(W), [3, 1]))
    row = gathered(W)
    sess.replace({W: "cpu:0"})
    for _ in range(runs):
        sess.run([first, late])
    held.then = lambda: sess.replace({W: "simulated:0"}) if is_replaced else sess.run(row)
    _, found = sess.run([first, late])
    assert home(sess, W) == "simulated:0"
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [[0.0], [1.0], [2.0]]


def test_a_step_that_reads_runs_once_more(sess: fb.Session, W: fb.Variable) -> None:
    held = Held()
    wait = fb.OpDef(
        "HeldByHomes",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda xp, x: held(x),
    )
    with fb.device("cpu:0"):
        first = wait(fb.placeholder_with_default(0.0, []))
    with fb.control_dependencies([first.op]):
        late = fb.identity(W) * 2.0
    row = gathered(W)
    sess.replace({W: "cpu:0"})
    sess.run([first, late])
    held.then = lambda: sess.run(row)
    _, found = sess.run([first, late])
    assert found.tolist() == [0.0, 2.0, 4.0]


def test_what_is_inside_of_a_step_that_writes_cannot_have_variables_go_elsewhere(
    sess: fb.Session, W: fb.Variable
) -> None:
    row = gathered(W)
    inner = fb.py_func(lambda value: sess.run(row), [0.0], fb.float32)
    with fb.control_dependencies([fb.assign_add(W, [1.0, 1.0, 1.0]).op]):
        inside = fb.py_func(lambda value: sess.run(row), [0.0], fb.float32)
    sess.replace({W: "cpu:0"})
    with pytest.raises(fb.errors.OpError, match="this is inside of one that writes variables"):
        sess.run(inside)
    assert home(sess, W) == "cpu:0"
    assert sess.run(inner) == sess.run(W)[0]
    assert home(sess, W) == "simulated:0"


def test_what_initialises_may_be_dropped_while_it_runs(sess: fb.Session) -> None:
    def dropping() -> np.ndarray[Any, Any]:
        sess._master._programs.drop_where(lambda prepared: True)  # type: ignore[attr-defined]
        return np.ones(3, np.float32)

    with fb.device("cpu:0"):
        initial = fb.reshape(fb.py_func(dropping, [], fb.float32), [3])
    with fb.device("cpu:1"):
        W = fb.Variable(initial)
    np.testing.assert_array_equal(sess.run(W), np.ones(3))
