"""What a step leaves behind without a garbage collection: nothing, whether it ends or fails."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.random_graphs import delayed
from tests.exec.state.executors import EXECUTORS, run_in

SIZE = 1000


@pytest.fixture(autouse=True)
def _no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


made: list[weakref.ref[Any]] = []


def _make(xp: Any, x: Any) -> Any:
    array = np.array(x) * 2.0
    made.append(weakref.ref(array))
    return array


# Its result is known to the test, which cannot hold it.
noted = fb.OpDef(
    "RetentionNoted", "x: float64 -> y: float64", infer=lambda x: x.shape, kernel=_make
)


@pytest.fixture(autouse=True)
def _nothing_made() -> Iterator[None]:
    made.clear()
    yield
    made.clear()


def alive() -> list[Any]:
    return [array for reference in made if (array := reference()) is not None]


def fails_by_numpy(x: fb.Tensor, wrong: fb.Tensor) -> fb.Tensor:
    """A kernel in which NumPy raises."""
    return fb.add(noted(x), fb.zeros(fb.cast([SIZE + wrong], fb.int32), fb.float64))


def fails_by_itself(x: fb.Tensor, wrong: fb.Tensor) -> fb.Tensor:
    """A kernel that raises an error of Flowbook's own."""
    return fb.gather(noted(x), wrong * SIZE)


def fails_for_numpy(x: fb.Tensor, wrong: fb.Tensor) -> fb.Tensor:
    """A kernel that says in words of its own what NumPy raised."""
    return fb.reshape(noted(x), fb.expand_dims(SIZE + wrong, 0))


def fails_in_a_package(x: fb.Tensor, wrong: fb.Tensor) -> fb.Tensor:
    """A kernel that calls functions in Python of another package, which get what it was given."""
    matrices = fb.reshape(noted(x)[:4], [2, 2]) * fb.cast(1 - wrong, fb.float64) + fb.eye(
        2, dtype=fb.float64
    ) * fb.cast(1 - wrong, fb.float64)
    return fb.matrix_inverse(matrices)


def fails_in_a_writing(x: fb.Tensor, wrong: fb.Tensor) -> fb.Tensor:
    W = fb.Variable(np.zeros(SIZE), name="W")
    return fb.scatter_add(W, fb.reshape(wrong * SIZE, [1]), noted(x)[:1])


def _refuse(xp: Any, wrong: Any) -> Any:
    if wrong:
        raise ValueError("as asked")
    return np.int32(0)


refusing = fb.OpDef(
    "RetentionRefusing", "x: int32 -> y: int32", infer=lambda x: x.shape, kernel=_refuse
)


def fails_in_users_code(x: fb.Tensor, wrong: fb.Tensor) -> fb.Tensor:
    """A frame of which stays visible, and knows those that it was called from."""
    return fb.gather(noted(x), refusing(wrong))


def fails_after_waiting(x: fb.Tensor, wrong: fb.Tensor) -> fb.Tensor:
    more, _ = delayed(fb.cast(wrong, fb.float32))
    return fb.gather(noted(x), fb.cast((more - 1.0) * SIZE, fb.int32))


def _report(context: Any, x: Any, wrong: Any) -> None:
    if wrong:
        context.fail(fb.errors.UnavailableError("as asked"))
    else:
        context.complete((x,))


reporting = fb.OpDef(
    "RetentionReporting",
    "x: float64, wrong: int32 -> y: float64",
    infer=lambda x, wrong: x.shape,
    kernel=_report,
    is_async=True,
    aliases={0: 0},
)


def fails_by_report(x: fb.Tensor, wrong: fb.Tensor) -> fb.Tensor:
    """An asynchronous kernel that reports an error."""
    return reporting(noted(x), wrong)


def is_not_finite(x: fb.Tensor, wrong: fb.Tensor) -> fb.Tensor:
    """What a guard finds."""
    return fb.log(noted(x) - fb.cast(wrong, fb.float64) * 100.0)


FAILING = [
    fails_by_numpy,
    fails_by_itself,
    fails_for_numpy,
    fails_in_a_package,
    fails_in_a_writing,
    fails_in_users_code,
    fails_after_waiting,
    fails_by_report,
]
Failing = Callable[[fb.Tensor, fb.Tensor], fb.Tensor]


def data() -> np.ndarray[Any, Any]:
    """A fed array that the caller has no other reference to than the returned one."""
    return np.ones(SIZE)


@pytest.mark.parametrize("timeout", [None, 100.0])
@pytest.mark.parametrize("is_guarded", [False, True])
@pytest.mark.parametrize("runs", [0, 1, 2, 3])
@pytest.mark.parametrize("failing", [*FAILING, is_not_finite])
def test_a_kept_error_keeps_nothing_of_the_step(
    failing: Failing, runs: int, is_guarded: bool, timeout: float | None
) -> None:
    x = fb.placeholder(fb.float64, [None], name="x")
    wrong = fb.placeholder(fb.int32, [], name="wrong")
    y = failing(x, wrong)
    if failing is is_not_finite and not is_guarded:
        y = fb.check_numerics(y, "wrong")
    with fb.Session() as sess:
        if is_guarded:
            sess.guard()
        for _ in range(runs):
            sess.run(y, {x: data(), wrong: 0}, timeout=timeout)
        fed = data()
        reference = weakref.ref(fed)
        with pytest.raises(fb.errors.OpError) as caught:
            sess.run(y, {x: fed, wrong: 1}, timeout=timeout)
        error = caught.value
        del fed, caught
        assert error.operation is not None
        assert len(made) >= runs + 1
        assert alive() == []
        assert reference() is None


@pytest.mark.parametrize("is_guarded", [False, True])
@pytest.mark.parametrize("failing", [*FAILING, is_not_finite])
def test_a_kept_error_of_a_partial_run_keeps_nothing_of_it(
    failing: Failing, is_guarded: bool
) -> None:
    x = fb.placeholder(fb.float64, [None], name="x")
    wrong = fb.placeholder(fb.int32, [], name="wrong")
    y = failing(x, wrong)
    if failing is is_not_finite and not is_guarded:
        y = fb.check_numerics(y, "wrong")
    with fb.Session() as sess:
        if is_guarded:
            sess.guard()
        step = sess.partial_run(y, [x, wrong])
        step.run([], {x: data()})
        assert len(alive()) == 1
        with pytest.raises(fb.errors.OpError) as caught:
            step.run(y, {wrong: 1})
        error = caught.value
        del caught
        assert error.operation is not None
        # The step is over, and may be kept too.
        assert step.closed
        assert alive() == []


def test_a_kept_error_of_a_partial_run_keeps_nothing_of_what_was_fed() -> None:
    x = fb.placeholder(fb.float64, [None], name="x")
    wrong = fb.placeholder(fb.int32, [], name="wrong")
    y = fails_by_itself(x, wrong)
    with fb.Session() as sess:
        step = sess.partial_run(y, [x, wrong])
        fed = data()
        reference = weakref.ref(fed)
        with pytest.raises(fb.errors.OpError) as caught:
            step.run(y, {x: fed, wrong: 1})
        error = caught.value
        del fed, caught
        assert error.operation is y.op
        assert reference() is None


@pytest.mark.parametrize("fails_early", [False, True])
def test_a_kept_error_of_a_callable_keeps_nothing_of_what_was_fed(fails_early: bool) -> None:
    x = fb.placeholder(fb.float64, [None], name="x")
    wrong = fb.placeholder(fb.int32, [], name="wrong")
    with fb.Session() as sess:
        call = sess.make_callable(fails_by_itself(x, wrong), [x, wrong])
        fed = data()
        reference = weakref.ref(fed)
        with pytest.raises((fb.errors.OpError, TypeError)) as caught:
            call(fed, *([] if fails_early else [1]))
        error = caught.value
        del fed, caught
        assert error is not None
        assert reference() is None


@pytest.mark.parametrize("kind", EXECUTORS)
@pytest.mark.parametrize("failing", FAILING)
def test_values_go_with_the_step(kind: str, failing: Failing) -> None:
    x = fb.placeholder(fb.float64, [None], name="x")
    wrong = fb.placeholder(fb.int32, [], name="wrong")
    y = fb.reduce_sum(failing(x, wrong))
    with fb.Session() as sess:
        for turn in range(3):
            run_in(kind, sess, y, {x: data(), wrong: np.int32(0)})
            assert len(made) == 2 * turn + 1
            assert alive() == []
            with pytest.raises(fb.errors.OpError):
                run_in(kind, sess, y, {x: data(), wrong: np.int32(1)})
            assert len(made) == 2 * turn + 2
            assert alive() == []


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("failing", [fails_by_numpy, fails_after_waiting, fails_by_report])
def test_values_go_with_a_step_on_several_devices(failing: Failing, first: int) -> None:
    devices = ["cpu:0", "cpu:1"]
    x = fb.placeholder(fb.float64, [None], name="x")
    wrong = fb.placeholder(fb.int32, [], name="wrong")
    with fb.device(devices[first]):
        before = noted(x)
    with fb.device(devices[1 - first]):
        y = fb.reduce_sum(failing(before * 2.0, wrong))
    with fb.Session(devices=devices) as sess:
        for turn in range(3):
            sess.run(y, {x: data(), wrong: 0})
            with pytest.raises(fb.errors.OpError) as caught:
                sess.run(y, {x: data(), wrong: 1})
            assert len(made) == 4 * turn + 4
            assert alive() == []
            del caught
        gc.collect()
        for _ in range(10):
            with pytest.raises(fb.errors.OpError):
                sess.run(y, {x: data(), wrong: 1})
        assert gc.collect() < 10


def test_a_step_on_several_devices_that_waits_in_vain_leaves_nothing() -> None:
    queue = fb.FIFOQueue(1, fb.float64, shapes=[[]])
    with fb.device("cpu:0"):
        taken = queue.dequeue() * 2.0
    with fb.device("cpu:1"):
        y = taken + 1.0
    with fb.Session(devices=["cpu:0", "cpu:1"]) as sess:
        sess.run(queue.close())
        for turn in range(14):
            if turn == 4:
                gc.collect()
            with pytest.raises(fb.errors.OutOfRangeError):
                sess.run(y)
        assert gc.collect() < 10


@pytest.mark.parametrize("kind", EXECUTORS)
@pytest.mark.parametrize("waits", [False, True])
def test_a_value_goes_after_its_last_use_while_the_step_goes_on(kind: str, waits: bool) -> None:
    counts: list[int] = []
    counting = fb.OpDef(
        "RetentionCounting",
        "x: float64 -> y: float64",
        infer=lambda x: x.shape,
        kernel=lambda xp, x: counts.append(len(alive())) or x,
        aliases={0: 0},
    )
    x = fb.placeholder(fb.float64, [None])
    large = noted(x)
    before = counting(fb.reduce_sum(large))
    with fb.control_dependencies([before]):
        total = fb.reduce_sum(large * 3.0)
    after = counting(total)
    fetches = [after, delayed(fb.cast(total, fb.float32))[0]] if waits else [after]
    with fb.Session() as sess:
        for _ in range(2):
            assert run_in(kind, sess, fetches, {x: data()})[0] == 6 * SIZE
            assert counts == [1, 0]
            counts.clear()


def test_values_go_with_a_partial_run() -> None:
    x = fb.placeholder(fb.float64, [None])
    late = fb.placeholder(fb.float64, [])
    y = fb.reduce_sum(noted(x) * late)
    with fb.Session() as sess:
        step = sess.partial_run(y, [x, late])
        step.run([], {x: data()})
        assert len(alive()) == 1
        assert step.run(y, {late: 2.0}) == 4 * SIZE
        assert alive() == []
        step = sess.partial_run(y, [x, late])
        step.run([], {x: data()})
        assert len(alive()) == 1
        step.close()
        assert alive() == []


@pytest.mark.parametrize("runs", [0, 1, 3])
def test_what_waits_in_vain_goes_too(runs: int) -> None:
    x = fb.placeholder(fb.float64, [None])
    y = noted(x)
    silent = fb.OpDef(
        "RetentionSilent",
        "x: float64 -> y: float64",
        infer=lambda x: x.shape,
        kernel=lambda context, x: None,
        is_async=True,
    )
    waits = silent(y)
    with fb.Session() as sess:
        for _ in range(runs + 1):
            with pytest.raises(fb.errors.DeadlineExceededError) as caught:
                sess.run(waits, {x: data()}, timeout=0.02)
            assert alive() == []
        assert caught.value is not None


def test_definitions_that_a_cell_has_made_anew_are_let_go() -> None:
    def run() -> weakref.ref[Any]:
        held = np.ones(SIZE)
        again = fb.OpDef(
            "RetentionAgain",
            "x: float64 -> y: float64",
            infer=lambda x: x.shape,
            kernel=lambda xp, x: xp.add(x, held),
        )
        with fb.Graph().as_default() as graph, fb.Session(graph=graph) as sess:
            for _ in range(3):
                sess.run(again(fb.zeros([SIZE], fb.float64)))
        return weakref.ref(held)

    earlier = run()
    run()
    gc.collect()
    assert earlier() is None
