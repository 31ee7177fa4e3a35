"""What an error of a run says: alike in the first run, by the reference, and in generated code."""

import threading
import time
import traceback

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.engine import abandoned, executor, run_errors
from flowbook.exec.plan.failure import StepFailed
from flowbook.graph.model import errors
from tests.graph.ops.queues.waiting import given_up


@pytest.fixture
def sess():
    with fb.Session() as session:
        yield session


@pytest.fixture
def x():
    return fb.placeholder(fb.float32, [2], name="x")


def failures(sess, fetches, feeds=None, timeout=None):
    """The errors of the first run, of a later one, and of one with a timeout."""
    found = []
    for limit in (timeout, timeout, timeout or 100.0):
        with pytest.raises(errors.OpError) as caught:
            sess.run(fetches, feeds, timeout=limit)
        found.append(caught.value)
    assert len({str(e) for e in found}) == 1
    return found


def raising(error, x, name="failing"):
    def fail(_):
        raise error

    return fb.py_func(fail, [x], fb.float32, name=name)


class Odd(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (ValueError("v"), errors.InvalidArgumentError, "INVALID_ARGUMENT"),
        (TypeError("t"), errors.InvalidArgumentError, "INVALID_ARGUMENT"),
        (UnicodeError("u"), errors.InvalidArgumentError, "INVALID_ARGUMENT"),
        (StopIteration("s"), errors.OutOfRangeError, "OUT_OF_RANGE"),
        (MemoryError("m"), errors.ResourceExhaustedError, "RESOURCE_EXHAUSTED"),
        (NotImplementedError("n"), errors.UnimplementedError, "UNIMPLEMENTED"),
        (KeyError("k"), errors.UnknownError, "UNKNOWN"),
        (ZeroDivisionError("z"), errors.UnknownError, "UNKNOWN"),
        (Odd("o"), errors.UnknownError, "UNKNOWN"),
    ],
    ids=lambda e: type(e).__name__ if isinstance(e, Exception) else getattr(e, "__name__", e),
)
def test_exceptions_of_a_py_func(sess, x, error, kind, code):
    y = raising(error, x) * 2.0
    for found in failures(sess, y, {x: [1.0, 2.0]}):
        assert type(found) is kind
        assert found.code == code
        assert found.__cause__ is error
        assert found.operation is y.op.inputs[0].op
        assert found.message == f"PyFunc 'failing': {type(error).__name__}: {error}"
        text = str(found)
        assert "defined at test_errors.py, line" in text
        assert "return fb.py_func(fail, [x], fb.float32, name=name)" in text
        assert "x:0 float32 [2] (test_errors.py, line" in text
        assert "given [2]" in text


def test_an_error_of_flowbooks_own_stays_what_it_is(sess, x):
    mine = errors.UnavailableError("the disk is gone", hint="mount it")
    y = raising(mine, x)
    (found, *_) = failures(sess, y, {x: [1.0, 2.0]})
    assert found is mine
    assert found.operation is y.op
    assert found.__cause__ is None
    assert str(found).count("PyFunc 'failing'") == 1
    assert "hint: mount it" in str(found)


def test_base_exceptions_pass_unchanged(sess, x):
    class Stop(BaseException):
        pass

    y = raising(Stop(), x)
    for _ in range(3):
        with pytest.raises(Stop):
            sess.run(y, {x: [1.0, 2.0]})
    assert sess.run(x, {x: [1.0, 2.0]}).tolist() == [1.0, 2.0]


def test_values_that_a_kernel_refuses(sess):
    a = fb.placeholder(fb.float32, name="a")
    b = fb.placeholder(fb.float32, name="b")
    product = fb.matmul(a, b, name="product")
    for found in failures(sess, product + 1.0, {a: np.ones((2, 3)), b: np.ones((4, 5))}):
        assert type(found) is errors.InvalidArgumentError
        assert found.operation is product.op
        text = str(found)
        assert text.startswith("MatMul 'product': ")
        assert "given [2, 3]" in text
        assert "given [4, 5]" in text
        assert 'product = fb.matmul(a, b, name="product")' in text


def test_an_inlined_expression_that_fails(sess):
    a, b = fb.placeholder(fb.float32, name="a"), fb.placeholder(fb.float32, name="b")
    total = fb.add(a, b, name="total")
    for found in failures(sess, fb.negative(total), {a: np.ones(2), b: np.ones(3)}):
        assert found.operation is total.op
        assert "given [2]" in str(found)
        assert "given [3]" in str(found)
        assert isinstance(found.__cause__, ValueError)


@pytest.mark.parametrize(
    "build",
    [fb.add, fb.equal, fb.squared_difference, lambda a, b: fb.where(a > 0, a, b)],
    ids=["add", "equal", "squared_difference", "where"],
)
def test_shapes_that_do_not_go_together_are_refused_as_when_building(sess, build):
    """In words of Flowbook's own, whether the shapes are known when the graph is built or not."""
    wrong = [np.ones((2, 3)), np.ones(4)]
    with pytest.raises(errors.InvalidArgumentError) as known:
        build(*map(fb.constant, wrong))
    fed = [fb.placeholder(fb.float32) for _ in wrong]
    for found in failures(sess, build(*fed), dict(zip(fed, wrong, strict=True))):
        assert type(found) is errors.InvalidArgumentError
        assert "shapes [2, 3] and [4] do not broadcast: 3 against 4" in found.message
        assert found.message.split(": ", 1)[1] == known.value.message.split(": ", 1)[1]
        assert found.hint == known.value.hint


def test_the_first_of_several_failing_operations(sess, x):
    first = raising(KeyError("first"), x, "first")
    second = raising(KeyError("second"), x, "second")
    for found in failures(sess, [second, first], {x: [1.0, 2.0]}):
        assert found.operation is first.op


def test_gradient_operations_cite_the_forward_line(sess, x):
    def refuse(_):
        raise ValueError("no gradient today")

    op = fb.OpDef(
        "FailingGradient",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda xp, x: x + xp.float32(1),
        grad=lambda op, dy: fb.py_func(refuse, [dy], fb.float32),
    )
    y = op(x)  # the forward line
    (dx,) = fb.gradients(fb.reduce_sum(y * 2.0), [x])
    for found in failures(sess, dx, {x: [1.0, 2.0]}):
        assert "# the forward line" in str(found)
        assert found.operation.name.startswith("gradients/")
        assert found.operation.site.line == y.op.site.line


# What users' kernels raise and give


def test_what_a_users_kernel_raises_is_no_fault_of_flowbooks(sess, x):
    def fail(xp, x):
        raise KeyError("k")

    own = fb.OpDef("Raises", "x: float32 -> y: float32", infer=lambda x: x.shape, kernel=fail)
    registered = fb.OpDef("RaisesToo", "x: float32 -> y: float32", kernel=lambda xp, x: x)
    fb.register_kernel("RaisesToo", "cpu")(fail)
    for y in (own(x), registered(x)):
        for found in failures(sess, y, {x: [1.0, 2.0]}):
            assert type(found) is errors.UnknownError
            assert found.operation is y.op


WRONG = {
    "dtype": lambda xp, x: x.astype(xp.float64),
    "kind": lambda xp, x: 1.0,
    "nothing": lambda xp, x: None,
    "shape": lambda xp, x: xp.zeros(3, xp.float32),
    "tuple": lambda xp, x: (x,),
    "masked": lambda xp, x: np.ma.masked_array(x, x > 1.0),
}


@pytest.mark.parametrize("how", WRONG)
def test_a_users_kernel_gives_something_else(sess, x, how):
    wrong = fb.OpDef(
        "Wrong", "x: float32 -> y: float32", infer=lambda x: x.shape, kernel=WRONG[how]
    )
    y = wrong(x)
    for found in failures(sess, y * 2.0, {x: [1.0, 2.0]}):
        assert type(found) is errors.InternalError
        assert found.operation is y.op
        assert found.__cause__ is None
    same = wrong([1.0, 2.0])
    for found in failures(sess, same * 2.0):  # Not hidden by folding.
        assert found.operation is same.op


def test_a_users_kernel_gives_the_wrong_number_of_outputs(sess, x):
    given = []
    two = fb.OpDef(
        "TwoOutputs",
        "x: float32 -> a: float32, b: float32",
        infer=lambda x: [x.shape, x.shape],
        kernel=lambda xp, x: tuple(given) if given else x,
    )
    a, b = two(x)
    for values in ([], [np.zeros(2, np.float32)], [np.zeros(2, np.float32)] * 3):
        given[:] = values
        for found in failures(sess, [a, b], {x: [1.0, 2.0]}):
            assert type(found) is errors.InternalError
            assert "a tuple of 2 outputs is wanted" in str(found)
    given[:] = [np.zeros(2, np.float32), np.ones(2, np.float32)]
    assert sess.run(b, {x: [1.0, 2.0]}).tolist() == [1.0, 1.0]


PLAIN = "hint: np.asarray(array) is a plain one"
FILLED = "hint: array.filled(0) gives elements without values one"


@pytest.mark.parametrize("outputs", ["y: float32", "y: float32, z: float32"])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda array: array.view(np.matrix), PLAIN),
        (lambda array: array.view(np.recarray), PLAIN),
        (np.ma.masked_array, FILLED),
        (lambda array: np.ma.masked_equal(array, 1.0), FILLED),
    ],
    ids=["matrix", "records", "unmasked", "masked"],
)
def test_a_users_kernel_gives_no_arrays_that_compute_otherwise(sess, make, hint, waits, outputs):
    x = fb.placeholder(fb.float32, [2, 2], name="x")
    count = outputs.count(":")

    def kernel(context, x):
        found = (make(x),) * count
        if waits:
            return context.complete(found)
        return found if count > 1 else found[0]

    op = fb.OpDef(
        "Peculiar",
        f"x: float32 -> {outputs}",
        infer=lambda x: [x.shape] * count,
        kernel=kernel,
        is_async=waits,
    )
    built = op(x)
    y = built if count == 1 else built[0]
    for found in failures(sess, fb.reduce_sum(y, 0), {x: [[1.0, 2.0], [3.0, 4.0]]}):
        assert type(found) is errors.InternalError
        assert found.operation is y.op
        assert "where a plain array is wanted" in str(found)
        assert hint in str(found)


def test_a_users_kernel_gives_scalars_and_what_lies_in_files(sess, x, tmp_path):
    mapped = np.memmap(tmp_path / "mapped", np.float32, "w+", shape=(2,))
    mapped[:] = [3.0, 4.0]
    op = fb.OpDef(
        "ScalarAndMapped",
        "x: float32 -> a: float32, b: float32",
        infer=lambda x: [fb.Shape([]), x.shape],
        kernel=lambda xp, x: (np.float32(2.0), mapped),
    )
    a, b = op(x)
    for _ in range(3):
        assert sess.run(a * b, {x: [1.0, 2.0]}).tolist() == [6.0, 8.0]


def test_a_registered_kernel_is_checked_too(sess, x):
    op = fb.OpDef("Registered", "x: float32 -> y: float32", kernel=lambda xp, x: x)
    fb.register_kernel("Registered", "cpu")(lambda xp, x: x.astype(xp.int8))
    for found in failures(sess, op(x), {x: [1.0, 2.0]}):
        assert type(found) is errors.InternalError
        assert "gave int8" in str(found)


def test_an_operation_without_outputs_may_give_nothing(sess, x):
    seen = []
    sink = fb.OpDef(
        "Sink",
        "x: float32 ->",
        infer=lambda x: [],
        kernel=lambda xp, x: seen.append(x.sum()),
        touches=fb.Touch(fb.Access.OUTSIDE),
    )
    operation = sink(x)
    for count in (1, 2, 3):
        assert sess.run(operation, {x: [1.0, 2.0]}) is None
        assert seen == [3.0] * count


# Asynchronous operations

ASYNC_WRONG = {
    "raises": (lambda context, x: 1 / 0, "ZeroDivisionError"),
    "fails": (lambda context, x: context.fail(KeyError("k")), "KeyError: 'k'"),
    "dtype": (lambda context, x: context.complete((x.astype(np.float64),)), "gave float64"),
    "count": (lambda context, x: context.complete((x, x)), "a tuple of 1 output"),
    "late": (
        lambda context, x: threading.Thread(target=context.fail, args=(KeyError("k"),)).start(),
        "KeyError: 'k'",
    ),
}


@pytest.mark.parametrize("how", ASYNC_WRONG)
def test_an_asynchronous_operation_fails(sess, x, how):
    kernel, text = ASYNC_WRONG[how]
    op = fb.OpDef(
        "FailsAsynchronously",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=kernel,
        is_async=True,
    )
    before = fb.square(fb.exp(x) * 2.0)
    y = op(before + 1.0)
    other = raising(Odd("not reached"), y)
    for found in failures(sess, other, {x: [1.0, 2.0]}):
        assert text in str(found)
        assert found.operation is y.op
    assert sess.run(before, {x: [0.0, 0.0]}).tolist() == [4.0, 4.0]


@pytest.mark.parametrize("second", ["complete", "fail"])
def test_the_first_report_of_an_asynchronous_operation_counts(sess, x, second):
    def report(context, given):
        context.complete((given,))
        if second == "complete":
            context.complete((given + 1,))
        else:
            context.fail(ValueError("too late"))

    reporting = fb.OpDef(
        "ReportsTwice", "x: float32 -> y: float32", infer=lambda x: x.shape, kernel=report,
        is_async=True, aliases={0: 0},
    )  # fmt: skip
    # The second operation waits when the first one's second report comes.
    y = reporting(reporting(x) * 2.0)
    for _ in range(3):
        np.testing.assert_array_equal(sess.run(y, {x: [1.0, 2.0]}), [2.0, 4.0])


def test_callbacks_of_what_is_given_up_are_called(sess, x):
    cancelled = []

    def wait(context, x, is_first):
        if is_first:
            context.complete((x,))
        context.on_cancel(lambda: cancelled.append(bool(is_first)))

    op = fb.OpDef(
        "WaitsAndNotes",
        "x: float32 -> y: float32",
        attributes={"is_first": fb.REQUIRED},
        infer=lambda x, is_first: x.shape,
        kernel=wait,
        is_async=True,
    )
    done, waiting = op(x, is_first=True), op(x, is_first=False)
    failing = raising(KeyError("k"), done)
    for count in range(1, 4):
        with pytest.raises(errors.UnknownError, match="KeyError"):
            sess.run([waiting, failing], {x: [1.0, 2.0]})
        assert cancelled == [False] * count


# Timeouts


class Clock:
    """A clock that jumps ahead after so many looks at it."""

    def __init__(self):
        self.looks_left = 1_000_000

    def __call__(self):
        self.looks_left -= 1
        return 0.0 if self.looks_left >= 0 else 1000.0


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


@pytest.mark.parametrize("executor", ["reference", "generated", "regions"])
def test_a_long_step_ends_at_its_deadline(sess, x, clock, executor):
    ran = []
    at_once = fb.OpDef(
        "AtOnce",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda context, x: context.complete((x,)),
        is_async=True,
    )
    y = at_once(x) if executor == "regions" else x
    for _ in range(50):
        y = fb.py_func(lambda v: ran.append(1) or v, [y], fb.float32)
    if executor != "reference":
        sess.run(y, {x: [1.0, 2.0]})
        ran.clear()
    clock.looks_left = 20
    with pytest.raises(errors.DeadlineExceededError, match="longer than its timeout") as caught:
        sess.run(y, {x: [1.0, 2.0]}, timeout=100.0)
    assert 0 < len(ran) < 30
    assert caught.value.code == "DEADLINE_EXCEEDED"
    assert caught.value.operation is None
    assert isinstance(caught.value, TimeoutError)
    clock.looks_left = 1_000_000
    ran.clear()
    for timeout in (100.0, None):
        assert sess.run(y, {x: [1.0, 2.0]}, timeout=timeout).tolist() == [1.0, 2.0]
    assert len(ran) == 100


def test_waiting_ends_at_the_deadline(sess, x):
    cancelled = []
    never = fb.OpDef(
        "NeverCompletes",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda context, x: context.on_cancel(lambda: cancelled.append(1)),
        is_async=True,
    )
    y = never(x) + 1.0
    for count in (1, 2, 3):
        given_up(sess, y, "1 asynchronous operation had not completed", {x: [1.0, 2.0]})
        assert len(cancelled) == count
    assert sess.run(x, {x: [1.0, 2.0]}, timeout=60).tolist() == [1.0, 2.0]


@pytest.fixture
def just_over(monkeypatch):
    """Time is just over where a thread waits for the step's, which notices a few looks later."""
    here, looks = threading.local(), []
    wait = abandoned._wait

    def waiting(*arguments):
        here.is_over = True
        return wait(*arguments)

    def clock():
        if hasattr(here, "is_over"):
            looks.append(1)
            return 100.0 + abandoned.GRACE / 2
        return 1000.0 if len(looks) > 3 else 0.0

    for module in (abandoned, executor):
        monkeypatch.setattr(module, "LONGEST_WAIT", 0.001)
    monkeypatch.setattr(abandoned, "_wait", waiting)
    monkeypatch.setattr(time, "monotonic", clock)


@pytest.mark.usefixtures("just_over")
def test_what_waits_is_named_in_a_step_that_runs_users_code(sess):
    queue = fb.FIFOQueue(3, fb.float32, [[]], name="q")
    y = fb.py_func(lambda value: value, [queue.dequeue(name="taken")], fb.float32)
    with pytest.raises(errors.DeadlineExceededError, match=r"'taken' .* waits for"):
        sess.run(y, timeout=100.0)


@pytest.mark.usefixtures("just_over")
def test_a_function_that_runs_has_no_more_time_than_the_step(sess, x):
    released = threading.Event()
    y = fb.py_func(lambda value: released.wait(10) and value, [x], fb.float32, name="slow")
    with pytest.raises(errors.DeadlineExceededError, match=r"still running: .*<lambda>"):
        sess.run(y, {x: [1.0, 2.0]}, timeout=100.0)
    assert not released.is_set()
    released.set()


def test_initialising_counts(sess, clock):
    v = fb.Variable(fb.random_uniform([3]))
    clock.looks_left = 1
    with pytest.raises(errors.DeadlineExceededError):
        sess.run(v, timeout=100.0)
    clock.looks_left = 1_000_000
    assert sess.run(v, timeout=100.0).shape == (3,)


def test_a_timeout_that_is_no_number(sess, x):
    for _ in range(3):
        with pytest.raises(TypeError):
            sess.run(x, {x: [1.0, 2.0]}, timeout="soon")


# Tracebacks

NOTE = "(Flowbook's own frames are hidden; fb.options.full_tracebacks = True shows them)"


def shown(error):
    return "".join(traceback.format_exception(error))


def test_internal_frames_are_hidden(sess, x):
    y = raising(KeyError("k"), x)
    for found in failures(sess, y, {x: [1.0, 2.0]}):
        text = shown(found)
        assert NOTE in text
        assert "in fail\n    raise error" in text
        frames = [f.filename for f in traceback.extract_tb(found.__traceback__)]
        inside = [f for f in frames if "/flowbook/" in f or f.startswith("<flowbook")]
        assert all(f.endswith("session.py") for f in inside)  # Where it was raised again.
        causes = [f.filename for f in traceback.extract_tb(found.__cause__.__traceback__)]
        assert causes
        assert all(f.endswith("test_errors.py") for f in causes)


@pytest.mark.parametrize(
    "use",
    [
        lambda sess, x: sess.run(x),
        lambda sess, x: sess.run([None]),
        lambda sess, x: sess.run(x, {x: [1.0]}),
        lambda sess, x: sess.run("y:0"),
        lambda sess, x: sess.run(x, [1]),
        lambda sess, x: sess.make_callable(x),
        lambda sess, x: sess.make_callable(x, x),
        lambda sess, x: sess.partial_run(x, []),
        lambda sess, x: sess.partial_run(x, [x]).run(x),
        lambda sess, x: (sess.close(), sess.run(x)),
        lambda sess, x: (sess.close(), sess.partial_run(x, [x])),
    ],
    ids=range(11),
)
def test_errors_of_the_session_hide_its_frames(sess, x, use):
    with pytest.raises(errors.OpError) as caught:
        use(sess, x)
    assert NOTE in caught.value.__notes__
    frames = [f.filename for f in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[0].endswith("test_errors.py")
    own = "session/session.py", "session/partial_run.py", "model/errors.py", "definition/public.py"
    assert all(f.endswith(("test_errors.py", *own)) for f in frames)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_the_switch_shows_them(sess, x, monkeypatch):
    monkeypatch.setattr(fb.options, "full_tracebacks", True)
    y = raising(KeyError("k"), x)
    for found in failures(sess, y, {x: [1.0, 2.0]}):
        frames = [f.filename for f in traceback.extract_tb(found.__traceback__)]
        assert any(f.endswith("exec/session/session.py") for f in frames)
        causes = [f.filename for f in traceback.extract_tb(found.__cause__.__traceback__)]
        assert any(f.endswith("outside/python_functions.py") for f in causes)
        assert NOTE not in shown(found)


def test_other_errors_keep_their_own_causes():
    cause = OSError("disk")
    error = errors.DataLossError("lost")
    error.__cause__ = cause
    assert run_errors.cause_of(error) is cause
    assert run_errors.cause_of(errors.AbortedError("x")) is None


def _runs(sess, fetch, feeds, **how):
    return lambda: sess.run(fetch, feeds, **how)


def _in_parts(sess, fetch, feeds):
    def run():
        step = sess.partial_run([fetch], list(feeds))
        return step.run(fetch, feeds)

    return run


def _summed(x, function):
    """A loop of three iterations that adds up what a function gives of a vector."""
    zeros = fb.zeros([2])
    found = fb.while_loop(
        lambda i, _: i < 3, lambda i, a: (i + 1, a + function(x)), (fb.constant(0), zeros)
    )
    return found[1]


def _reported(x):
    """A vector as an asynchronous operation gives it on."""
    give = fb.OpDef(
        "GivesOn",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda context, x: context.complete((x.copy(),)),
        is_async=True,
    )
    return give(x)


def _chain(x, length):
    for _ in range(length):
        x = fb.identity(-x)
    return x


# How a step runs that takes what an operation gives, after its first run.
LATER = {
    "step": lambda sess, f, x, fed: _runs(sess, f(x) * 2.0, fed),
    "fetched": lambda sess, f, x, fed: _runs(sess, f(x), fed),
    "timed": lambda sess, f, x, fed: _runs(sess, f(x) * 2.0, fed, timeout=100.0),
    "stretches": lambda sess, f, x, fed: _runs(sess, _chain(f(x), 1000), fed),
    "region": lambda sess, f, x, fed: _runs(sess, f(_reported(x)) * 2.0, fed),
    "branch": lambda sess, f, x, fed: _runs(
        sess, fb.cond(x[0] > 0, lambda: f(x) * 2.0, lambda: x), fed
    ),
    "loop": lambda sess, f, x, fed: _runs(sess, _summed(x, f), fed),
    "waiting loop": lambda sess, f, x, fed: _runs(
        sess, _summed(x, lambda x: f(_reported(x)) * 2.0), fed
    ),
    "parts": lambda sess, f, x, fed: _in_parts(sess, f(x) * 2.0, fed),
}


@pytest.mark.parametrize("run", LATER)
def test_a_users_kernel_gives_something_else_later(sess, x, run):
    """What is wrong is said of it, and not of what takes it, also where first runs were right."""
    how, made = ["right"], []
    later = fb.OpDef(
        "WrongLater",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda xp, x: xp.negative(x) if how[0] == "right" else WRONG[how[0]](xp, x),
    )

    def build(x):
        made.append(later(x))
        return made[-1]

    step = LATER[run](sess, build, x, {x: [1.0, 2.0]})
    right = step().tolist()
    for wrong in WRONG:
        if wrong in ("kind", "masked") and "loop" in run:
            continue  # What is added to an array leaves one.
        how[0] = wrong
        with pytest.raises(errors.InternalError) as caught:
            step()
        assert caught.value.operation is made[0].op
        assert not isinstance(caught.value.__cause__, StepFailed)
        how[0] = "right"
        assert step().tolist() == right


def test_a_users_kernel_of_several_outputs_gives_something_else_later(sess, x):
    given = []
    two = fb.OpDef(
        "WrongPairLater",
        "x: float32 -> a: float32, b: float32",
        infer=lambda x: [x.shape, x.shape],
        kernel=lambda xp, x: tuple(given),
    )
    right, wrong = np.ones(2, np.float32), np.ones(2)
    given[:] = right, right
    a, b = two(x)
    total = a + b
    for _ in range(3):
        assert sess.run(total, {x: [1.0, 2.0]}).tolist() == [2.0, 2.0]
    for values in ([right], [right, right, right], [wrong, right], [right, wrong]):
        given[:] = values
        with pytest.raises(errors.OpError) as caught:
            sess.run(total, {x: [1.0, 2.0]})
        assert caught.value.operation is a.op


def test_a_registered_kernel_gives_something_else_later(sess, x):
    op = fb.OpDef("RegisteredLater", "x: float32 -> y: float32", kernel=lambda xp, x: x)
    given = [np.ones(2, np.float32)]
    fb.register_kernel("RegisteredLater", "cpu")(lambda xp, x: given[0])
    y = op(x)
    z = y + 1.0
    for _ in range(3):
        assert sess.run(z, {x: [1.0, 2.0]}).tolist() == [2.0, 2.0]
    given[0] = np.ones(2)
    with pytest.raises(errors.InternalError, match="gave float64") as caught:
        sess.run(z, {x: [1.0, 2.0]})
    assert caught.value.operation is y.op


def test_a_users_expression_whose_shape_is_inferred_wrongly(sess):
    """It is seen where the shape is; what nothing needs of several outputs is no matter."""
    given = fb.placeholder(fb.float32, name="given")
    one = fb.OpDef(
        "MisinferredSum",
        "x: T -> y: T",
        T=fb.FLOATS,
        expression="x + 1",
        infer=lambda _: fb.Shape([2]),
    )
    two = fb.OpDef(
        "MisinferredPair",
        "x: T -> y: T, z: T",
        T=fb.FLOATS,
        expression="x + 1, x - 1",
        infer=lambda _: [fb.Shape([2]), fb.Shape([2])],
    )
    for y in (one(given), two(given)[0]):
        z = y * 2.0
        for _ in range(3):
            assert sess.run(z, {given: [1.0, 2.0]}).tolist() == [4.0, 6.0]
        with pytest.raises(errors.InternalError, match=r"shape \[3\]") as caught:
            sess.run(z, {given: [1.0, 2.0, 3.0]})
        assert caught.value.operation is y.op


def test_a_users_router_gives_something_else_later(sess, x):
    given = [np.ones(2, np.float32)]
    router = fb.OpDef(
        "SeesDeadLater",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda xp, x: given[0],
        sees_dead=True,
    )
    y = router(x)
    z = y * 2.0
    for _ in range(3):
        assert sess.run(z, {x: [1.0, 2.0]}).tolist() == [2.0, 2.0]
    given[0] = np.ones(2)
    with pytest.raises(errors.InternalError, match="gave float64") as caught:
        sess.run(z, {x: [1.0, 2.0]})
    assert caught.value.operation is y.op


def test_a_users_kernel_cannot_write_to_what_is_fed(sess, x):
    def write(xp, x):
        x += 1
        return x

    mine = fb.OpDef("WritesToItsInput", "x: float32 -> y: float32", kernel=write)
    y, fed = mine(x), np.ones(2, np.float32)
    for found in failures(sess, y, {x: fed}):
        assert "read-only" in str(found)
    # Nor once it has passed the checks, and runs as code.
    hidden = fb.OpDef(
        "WritesLater",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda xp, x: write(xp, x) if is_bold else xp.add(x, x),
    )
    is_bold, z = False, hidden(x)
    for _ in range(3):
        np.testing.assert_array_equal(sess.run(z, {x: fed}), [2, 2])
    is_bold = True
    with pytest.raises(errors.InvalidArgumentError, match="read-only"):
        sess.run(z, {x: fed})
    np.testing.assert_array_equal(fed, [1, 1])
    assert fed.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("timeout", "error"), [("1", TypeError), (-1.0, ValueError), (float("nan"), ValueError)]
)
def test_a_timeout_that_is_no_time(sess, x, timeout, error):
    with pytest.raises(error, match="number of seconds"):
        sess.run(x, {x: [1.0, 2.0]}, timeout=timeout)


def test_what_tensorflow_calls_otherwise_is_named() -> None:
    error = fb.errors.InvalidArgumentError("wrong")
    with pytest.raises(AttributeError, match=r"has no op: use error\.operation"):
        _ = error.op
    assert not hasattr(error, "nonsense")


def test_what_a_queue_is_to_us_is_not_said() -> None:
    rows = fb.train.batches(np.arange(2.0), 2)
    with fb.Session() as sess:
        sess.run(rows)
        with pytest.raises(fb.errors.OutOfRangeError) as caught:
            sess.run(rows)
    assert "batches/queue:0 resource []" in str(caught.value)
    assert "given" not in str(caught.value)
