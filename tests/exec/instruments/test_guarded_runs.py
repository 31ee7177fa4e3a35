"""A guard sees every kind of value, write and run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import flowbook as fb
from flowbook.exec.plan.program import Block, PlanNode, Program
from flowbook.exec.plan.watching import Instrument
from flowbook.exec.signature.signature import Signature
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.ops.basis.constants import no_op
from flowbook.graph.ops.checks.checking import check_finite_op
from tests.exec.random_graphs import delayed, examples

NAN, INF = float("nan"), float("inf")


def failure(call: Callable[[], Any]) -> Any:
    with pytest.raises(fb.errors.InvalidArgumentError) as caught:
        call()
    return caught.value


# Gradients and updates


@pytest.mark.parametrize("runs", [0, 2], ids=["reference", "generated"])
def test_a_gradient_cites_the_line_of_its_forward_operation(runs: int) -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    root = fb.sqrt(x, name="root")
    [gradient] = fb.gradients(root, [x])
    with fb.Session() as sess, sess.guard():
        for _ in range(runs):
            sess.run(gradient, {x: [1.0, 4.0]})
        error = failure(lambda: sess.run(gradient, {x: [0.0, 4.0]}))
    assert error.operation is not root.op
    assert error.operation.name.startswith("gradients/root_grad/")
    assert 'fb.sqrt(x, name="root")' in str(error)
    assert "root:0: 0 to 2, mean 1, 1 zeros" in str(error)


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: fb.train.GradientDescentOptimizer(0.1),
        lambda: fb.train.AdamOptimizer(0.1),
        lambda: fb.train.AdagradOptimizer(0.1),
    ],
    ids=["descent", "adam", "adagrad"],
)
@pytest.mark.parametrize("runs", [0, 2], ids=["reference", "generated"])
def test_sparse_updates_are_guarded_before_they_are_written(optimizer: Any, runs: int) -> None:
    table = fb.Variable(fb.ones([5, 2]), name="table")
    ids = fb.placeholder(fb.int32, [None], name="ids")
    scale = fb.placeholder(fb.float32, [], name="scale")
    rows = fb.nn.embedding_lookup(table, ids)
    # Forward it is 0; only the rows' gradient is infinite.
    loss = fb.reduce_sum(fb.sqrt(rows * scale, name="root"))
    train = optimizer().minimize(loss)
    with fb.Session() as sess, sess.guard():
        for _ in range(runs):
            sess.run(train, {ids: [0, 0, 3], scale: 1.0})
        before = sess.run(table)
        error = failure(lambda: sess.run(train, {ids: [0, 0, 3], scale: 0.0}))
        assert "root_grad" in error.operation.name
        np.testing.assert_array_equal(sess.run(table), before)


@pytest.mark.parametrize("write", ["assign", "assign_add", "assign_sub"])
@pytest.mark.parametrize("wrong", [NAN, INF, -INF])
def test_what_is_fed_is_not_written(write: str, wrong: float) -> None:
    v = fb.Variable(fb.zeros([2]), name="v")
    x = fb.placeholder(fb.float32, [2], name="x")
    written = getattr(fb, write)(v, x, name="written")
    with fb.Session() as sess, sess.guard():
        for _ in range(3):
            error = failure(lambda: sess.run(written, {x: [1.0, wrong]}))
            assert error.operation.name == "written"
            assert "it was about to write 1" in error.message
            assert "x:0, as it was fed:" in str(error)
            assert "look at what is fed to x:0" in error.hint
            np.testing.assert_array_equal(sess.run(v), [0.0, 0.0])


@pytest.mark.parametrize("write", ["scatter_update", "scatter_add", "scatter_sub"])
def test_rows_are_checked_before_they_are_scattered(write: str) -> None:
    v = fb.Variable(fb.zeros([4, 2]), name="v")
    x = fb.placeholder(fb.float32, [2, 2], name="x")
    written = getattr(fb, write)(v, [0, 1], x, name="written")
    logs = getattr(fb, write)(v, [0, 1], fb.log(x, name="logs"))
    with fb.Session() as sess, sess.guard():
        for _ in range(3):
            found = failure(lambda: sess.run(written, {x: [[1.0, 1.0], [NAN, 1.0]]}))
            assert found.operation.name == "written"
            found = failure(lambda: sess.run(logs, {x: [[1.0, 1.0], [-1.0, 1.0]]}))
            assert found.operation.name == "logs"
            np.testing.assert_array_equal(sess.run(v), np.zeros((4, 2)))


def test_a_sum_that_overflows_in_the_variable_is_found_where_it_is_returned() -> None:
    v = fb.Variable(np.float32(3e38), name="v")
    added = fb.assign_add(v, np.float32(3e38), name="added")
    with fb.Session() as sess, sess.guard():
        error = failure(lambda: sess.run(added))
        assert "AssignAdd 'added': it wrote 1 Inf" in error.message
        assert "the step had changed: v" in str(error)


# Kinds of values


def test_what_has_no_infinities_is_no_matter() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    texts = fb.placeholder(fb.string, [2])
    whole = fb.cast(x, fb.int32) // 2
    fetched = [whole, fb.is_finite(x), fb.greater(x, 0.0), fb.strings.join([texts, "!"])]
    with fb.Session() as sess, sess.guard():
        for _ in range(3):
            found = sess.run([x, *fetched[1:]], {x: [NAN, INF], texts: ["NaN", "inf"]})
            np.testing.assert_array_equal(found[0], [NAN, INF])
            assert list(found[1]) == [False, False]
            assert list(sess.run(whole, {x: [4.0, 6.0]})) == [2, 3]


@pytest.mark.parametrize("part", [complex(NAN, 0), complex(0, NAN), complex(1, INF)])
@pytest.mark.parametrize("dtype", [fb.complex64, fb.complex128])
def test_both_parts_of_complex_numbers_are_checked(part: complex, dtype: Any) -> None:
    z = fb.placeholder(dtype, [2], name="z")
    product = fb.multiply(z, z, name="product")
    with fb.Session() as sess, sess.guard():
        for _ in range(3):
            sess.run(product, {z: [1j, 2.0]})
            assert failure(lambda: sess.run(product, {z: [1j, part]})).operation is product.op


@pytest.mark.parametrize(("dtype", "large"), [(fb.float16, 60000.0), (fb.bfloat16, 3e38)])
def test_narrow_numbers_overflow(dtype: Any, large: float) -> None:
    x = fb.placeholder(dtype, [3], name="x")
    doubled = fb.add(x, x, name="doubled")
    with fb.Session() as sess, sess.guard():
        for _ in range(3):
            sess.run(doubled, {x: [1.0, 2.0, 3.0]})
            error = failure(lambda: sess.run(doubled, {x: [1.0, large, 3.0]}))
            assert "1 Inf among 3 values of shape [3], the first at [1]" in error.message
            assert "x:0, as it was fed: 1 to" in str(error)


def test_values_of_sparse_tensors_are_checked() -> None:
    s = fb.sparse.placeholder(fb.float32, [2, 3], name="s")
    dense = fb.sparse.sparse_dense_matmul(s, fb.ones([3, 1]), name="product")
    value = fb.SparseTensorValue([[0, 1], [1, 2]], [1.0, 2.0], [2, 3])
    wrong = fb.SparseTensorValue([[0, 1], [1, 2]], [1.0, NAN], [2, 3])
    with fb.Session() as sess, sess.guard():
        for _ in range(3):
            np.testing.assert_array_equal(sess.run(dense, {s: value}), [[1.0], [2.0]])
            assert "1 NaN among 2 values" in str(failure(lambda: sess.run(dense, {s: wrong})))


def test_a_python_function_answers_for_what_it_returns() -> None:
    def through_nan(x: Any) -> Any:
        return np.nan_to_num(x * np.float32(NAN)) + np.where(x < 0, np.float32(NAN), x)

    x = fb.placeholder(fb.float32, [2], name="x")
    users = fb.py_func(through_nan, [x], fb.float32, name="users")
    largest = fb.reduce_max(users)
    with fb.Session() as sess, sess.guard():
        for _ in range(3):
            assert sess.run(largest, {x: [1.0, 2.0]}) == 2.0
            error = failure(lambda: sess.run(largest, {x: [1.0, -2.0]}))
            assert error.operation.name == "users"
            assert "x:0, as it was fed: -2 to 1, mean -0.5" in str(error)


def counting_kernel(x: fb.Tensor, calls: list[Any]) -> fb.Tensor:
    count = fb.OpDef(
        "CountsItsCalls",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda xp, x: calls.append(x) or x + 0,
    )
    return count(x)


def counting_function(x: fb.Tensor, calls: list[Any]) -> fb.Tensor:
    y = fb.py_func(lambda x: calls.append(x) or x, [x], fb.float32, stateful=False)
    y.set_shape([2])
    return y


@pytest.mark.parametrize("counted", [counting_kernel, counting_function])
def test_what_a_user_wrote_is_not_run_again_to_find_what_was_wrong(counted: Any) -> None:
    calls: list[Any] = []
    x = fb.placeholder(fb.float32, [2], name="x")
    root = fb.sqrt(counted(x, calls), name="root")
    largest = fb.reduce_max(root)
    with fb.Session() as sess, sess.guard():
        for runs in range(1, 4):
            error = failure(lambda: sess.run(largest, {x: [1.0, -1.0]}))
            assert error.operation is root.op
            assert len(calls) == runs


def test_what_a_variable_held_before_it_was_guarded_is_named() -> None:
    v = fb.Variable([1.0, 1.0], name="v")
    x = fb.placeholder(fb.float32, [2])
    with fb.Session() as sess:
        sess.run(fb.assign(v, x), {x: [NAN, 1.0]})
        with sess.guard():
            error = failure(lambda: sess.run(v + 1.0))
            assert "ReadVariable 'v/read': it found in the variable 1 NaN" in error.message
            sess.run(fb.assign(v, x), {x: [1.0, 1.0]})
            np.testing.assert_array_equal(sess.run(v + 1.0), [2.0, 2.0])


# Kinds of runs


@pytest.mark.parametrize("timeout", [None, 100.0])
def test_several_threads_run_guarded_steps(timeout: float | None) -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    v = fb.Variable([0.0, 0.0], name="v")
    added = fb.assign_add(v, fb.log(x, name="logs"))
    steps, errors = 50, []
    start = threading.Barrier(4)
    with fb.Session() as sess, sess.guard():
        sess.run(v)

        def work(number: int) -> None:
            start.wait()
            for step in range(steps):
                is_wrong = step % 4 == number
                feed = [1.0, -1.0] if is_wrong else [np.e, np.e]
                try:
                    sess.run(added, {x: feed}, timeout=timeout)
                    assert not is_wrong
                except fb.errors.InvalidArgumentError as error:
                    assert is_wrong
                    errors.append((error.operation.name, "mean 0" in str(error)))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == [("logs", True)] * steps
        np.testing.assert_allclose(sess.run(v), [4 * steps - steps] * 2, rtol=1e-5)


@pytest.mark.parametrize("timeout", [None, 100.0])
def test_summaries_of_a_failing_step_are_not_kept(timeout: float | None) -> None:
    x = fb.placeholder(fb.float32, [])
    v = fb.Variable(1.0)
    loss = v * fb.log(x)
    fb.summary.scalar("loss", loss)
    train = fb.train.GradientDescentOptimizer(0.1).minimize(loss)
    with fb.Session() as sess:
        kept = sess.summarize()
        with sess.guard():
            for value in (1.0, -1.0, 1.0, 0.0, 1.0):
                if value > 0:
                    sess.run(train, {x: value}, timeout=timeout)
                else:
                    failure(lambda v=value: sess.run(train, {x: v}, timeout=timeout))
        assert [p.step for p in kept.history.points("loss")] == [0, 2, 4]


def test_a_callable_made_before_is_guarded() -> None:
    x = fb.placeholder(fb.float32, [])
    with fb.Session() as sess:
        logarithm = sess.make_callable(fb.log(x), [x])
        assert np.isnan(logarithm(-1.0))
        with sess.guard():
            failure(lambda: logarithm(-1.0))
        assert np.isnan(logarithm(-1.0))


# Partial runs


def test_a_partial_run_fails_as_soon_as_something_is_not_finite() -> None:
    x, y = (fb.placeholder(fb.float32, [2], name=name) for name in "xy")
    v = fb.Variable([0.0, 0.0], name="v")
    logs = fb.log(x, name="logs")
    written = fb.assign_add(v, logs * y)
    with fb.Session() as sess, sess.guard():
        for _ in range(2):
            step = sess.partial_run([logs, written], [x, y])
            np.testing.assert_array_equal(step.run(logs, {x: [1.0, 1.0]}), [0.0, 0.0])
            np.testing.assert_array_equal(step.run(written, {y: [1.0, 1.0]}), [0.0, 0.0])
            step = sess.partial_run([logs, written], [x, y])
            error = failure(lambda step=step: step.run(logs, {x: [1.0, -1.0]}))
            assert error.operation is logs.op
            assert "x:0, as it was fed: -1 to 1, mean 0" in str(error)
            assert "the step changed no variable" in str(error)
            with pytest.raises(fb.errors.FailedPreconditionError, match="ended"):
                step.run(written, {y: [1.0, 1.0]})
        np.testing.assert_array_equal(sess.run(v), [0.0, 0.0])


def test_a_check_makes_no_part_of_a_partial_run_wait() -> None:
    x, y = (fb.placeholder(fb.float32, [], name=name) for name in "xy")
    v, w = fb.Variable(0.0, name="v"), fb.Variable(0.0, name="w")
    first = fb.assign(v, x * 2.0)
    second = fb.assign(w, fb.log(x + y, name="logs"))
    with fb.control_dependencies([first]):
        third = fb.assign(w, fb.log(y, name="later"))
    with fb.Session() as sess, sess.guard():
        step = sess.partial_run([first, second], [x, y])
        assert step.run(first, {x: 1.0}) == 2.0
        assert sess.run(v) == 2.0
        error = failure(lambda: step.run(second, {y: -3.0}))
        assert error.operation.name == "logs"
        assert "the step may have changed: v" in str(error)
        assert sess.run([v, w]) == [2.0, 0.0]
        step = sess.partial_run(third, [x, y])
        error = failure(lambda: step.run(third, {x: 1.0, y: -3.0}))
        assert "the step had changed: v\n" in str(error)
        after = fb.log(first - y, name="after")
        step = sess.partial_run(after, [x, y])
        error = failure(lambda: step.run(after, {x: 1.0, y: 3.0}))
        assert "the step had changed: v" in str(error)


def test_what_a_partial_run_is_fed_is_not_written() -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    v = fb.Variable(0.0, name="v")
    written = fb.assign(v, x, name="written")
    with fb.Session() as sess, sess.guard():
        step = sess.partial_run([x, written], [x])
        error = failure(lambda: step.run([x, written], {x: NAN}))
        assert "Assign 'written': it was about to write 1 NaN" in error.message
        assert sess.run(v) == 0.0


def test_a_partial_run_with_asynchronous_operations_is_guarded() -> None:
    x, y = (fb.placeholder(fb.float32, [], name=name) for name in "xy")
    more, less = delayed(x)
    logs = fb.log(less * y, name="logs")
    with fb.Session() as sess, sess.guard():
        step = sess.partial_run([more, logs], [x, y])
        assert step.run(more, {x: 2.0}) == 3.0
        assert step.run(logs, {y: 1.0}) == 0.0
        step = sess.partial_run([more, logs], [x, y])
        assert step.run(more, {x: 2.0}) == 3.0
        assert failure(lambda: step.run(logs, {y: -1.0})).operation is logs.op


def test_a_partial_run_keeps_the_guard_that_it_began_with() -> None:
    x, y = (fb.placeholder(fb.float32, []) for _ in range(2))
    logs = fb.log(x)
    both = logs + y
    with fb.Session() as sess:
        before = sess.partial_run([logs, both], [x, y])
        with sess.guard():
            within = sess.partial_run([logs, both], [x, y])
            assert np.isnan(before.run(logs, {x: -1.0}))
        failure(lambda: within.run(logs, {x: -1.0}))
        after = sess.partial_run([logs, both], [x, y])
        assert np.isnan(after.run(logs, {x: -1.0}))


def test_what_is_allowed_is_allowed_in_partial_runs() -> None:
    x = fb.placeholder(fb.float32, [])
    logs = fb.log(x, name="logs")
    with fb.Session() as sess, sess.guard(allow=logs):
        assert np.isinf(sess.partial_run(logs, [x]).run(logs, {x: 0.0}))


@settings(max_examples=60)
@given(examples())
def test_guarded_and_plain_partial_runs_give_equal_results(example: Any) -> None:
    results = []
    for is_guarded in (False, True):
        with fb.Session(graph=example.graph) as sess:
            if is_guarded:
                sess.guard()
            found = []
            for fetches, feeds in example.steps:
                step = sess.partial_run([fetches, example.sends], list(feeds))
                for tensor, value in feeds.items():
                    step.run([], {tensor: value})
                found.append(step.run([fetches, example.sends])[0])
            results.append(found)
    for plain, guarded in zip(*results, strict=True):
        for a, b in zip(plain, guarded, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_write_waits_for_its_check_wherever_it_runs() -> None:
    """The order of the nodes is enough for a step on one thread; the edges are for the others."""
    x = fb.placeholder(fb.float32, [], name="x")
    v, w = fb.Variable(0.0, name="v"), fb.Variable(0.0, name="w")
    first = fb.assign(v, fb.log(x))
    second = fb.assign(w, fb.sqrt(first))
    with fb.Session() as sess:
        signature = Signature((first, second), (), (x,))
        part = sess._master.prepare(signature, [sess.guard()]).program.parts[0]
        checks = {i for i, n in enumerate(part.nodes) if n.type == check_finite_op.key}
        written = [n for n in part.nodes if op_keyed(n.type).access is fb.Access.WRITE]
        waited = [checks.intersection(node.after) for node in written]
        assert [len(found) for found in waited] == [1, 1]
        assert waited[0] != waited[1]


# Beside other instruments


class NumberedAnew(Instrument):
    """Puts as many nodes in front as there are, and numbers the values the other way round."""

    rewrites = True

    def rewritten(self, program: Program, has_late_feeds: bool) -> Program:
        (part,) = program.parts
        fed, last, count = len(part.feeds), part.values - 1, len(part.nodes)

        def values(old: Iterable[int]) -> tuple[int, ...]:
            return tuple([v if v < fed else fed + last - v for v in old])

        def nodes(old: Iterable[int]) -> tuple[int, ...]:
            return tuple([index + count for index in old])

        def block(old: Block) -> Block:
            numbered = [
                node._replace(
                    inputs=values(node.inputs),
                    outputs=values(node.outputs),
                    after=nodes(node.after),
                    behind=nodes(node.behind),
                )
                for node in old.nodes
            ]
            return old._replace(nodes=tuple(numbered), blocks=tuple(map(block, old.blocks)))

        whole = block(part.block)
        front = PlanNode((), (), (), no_op.key, {}, (), (), None, "front", ())
        made = part._replace(
            block=whole._replace(nodes=(*[front] * count, *whole.nodes)),
            fetches=values(part.fetches),
            targets=nodes(part.targets),
            constants=dict(zip(values(part.constants), part.constants.values(), strict=True)),
            on_host=values(part.on_host),
        )
        return program._replace(parts=(made,))


def straight(x: fb.Tensor) -> fb.Tensor:
    v = fb.Variable([0.0, 0.0], name="v")
    return fb.assign_add(v, fb.exp(x) * fb.log(x, name="logs") + 1.0)


def in_a_loop(x: fb.Tensor) -> fb.Tensor:
    v = fb.while_loop(
        lambda i, v: i < 2, lambda i, v: (i + 1, v * fb.log(x, name="logs") + fb.exp(v)), (0, x)
    )[1]
    return fb.reduce_sum(v)


def through_python(x: fb.Tensor) -> fb.Tensor:
    counts = fb.py_func(np.square, [fb.cast(x, fb.int32)], fb.int32)
    with fb.control_dependencies([counts]):
        return fb.log(x, name="logs") + fb.cast(counts, fb.float32)


@pytest.mark.parametrize("model", [straight, in_a_loop, through_python])
@pytest.mark.parametrize("is_first", [False, True])
def test_others_may_rewrite_the_program_too(model: Any, is_first: bool) -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    y = model(x)
    with fb.Session() as sess:
        if is_first:
            sess._instruments.add(NumberedAnew())
        sess.guard()
        if not is_first:
            sess._instruments.add(NumberedAnew())
        for _ in range(3):
            error = failure(lambda: sess.run(y, {x: [1.0, -2.0]}))
            assert error.operation.name.endswith("logs")
            assert "it gave 1 NaN among 2 values of shape [2], the first at [1]" in error.message
            assert "x:0, as it was fed: -2 to 1, mean -0.5" in str(error) or model is in_a_loop
            assert "the step changed no variable" in str(error)
            sess.run(y, {x: [1.0, 2.0]})
