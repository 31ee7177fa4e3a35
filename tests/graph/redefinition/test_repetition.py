"""A loop that builds and runs is told of, once per line, and nothing else is."""

import asyncio
import pathlib
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.redefinition import repetition

GrowthWarning = fb.errors.GraphGrowthWarning
MANY = 2 * repetition._RUNS + 2


def told(caught: Any) -> list[str]:
    return [str(each.message) for each in caught if each.category is GrowthWarning]


@pytest.fixture
def caught() -> Iterator[Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


@pytest.fixture
def sess() -> Any:
    return fb.Session()


def call_from_many_places(function: Any) -> None:
    """Call a function with each number once, each time from another line."""
    exec("\n".join(f"call({number})" for number in range(MANY)), {"call": function})


def line_of(text: str) -> int:
    """The number of the line of this file that holds a text."""
    with open(__file__, encoding="utf-8") as file:
        return next(n for n, line in enumerate(file, 1) if text in line and "line_of" not in line)


def test_a_loop_that_builds_and_runs(sess: Any, caught: Any) -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    for i in range(MANY):
        sess.run(x + float(i), {x: 1.0})  # the line
    line = line_of("# the line")
    [message] = told(caught)
    assert message == (
        f"a loop builds and runs: in {repetition._RUNS + 1} runs so far one line has added "
        f"{2 * repetition._RUNS + 2} operations to the graph, "
        "and each of these runs had to be prepared anew\n"
        f"  at test_repetition.py, line {line}:  "
        "sess.run(x + float(i), {x: 1.0})  # the line\n"
        "  hint: build once, before the loop, and feed what changes: sess.run(y, {x: value})"
    )
    [warning] = [each for each in caught if each.category is GrowthWarning]
    assert (warning.filename, warning.lineno) == (__file__, line)


def test_it_comes_once_per_line(sess: Any, caught: Any) -> None:
    for _ in range(4):
        for i in range(MANY):
            a = fb.constant(float(i))
            sess.run(a)
            b = fb.identity(a)
            sess.run(b)
    assert len(told(caught)) == 2


def test_it_is_an_error_where_warnings_are(sess: Any) -> None:
    rounds = []

    def build_and_run() -> None:
        for i in range(MANY):
            rounds.append(i)
            sess.run(fb.constant(float(i)))

    with pytest.raises(GrowthWarning):
        build_and_run()
    assert len(rounds) == repetition._RUNS + 1
    assert sess.run(fb.constant(7.0)) == 7.0


@pytest.mark.parametrize("how", ["gradients", "minimize"])
def test_what_is_derived_is_told_at_the_line_that_asks(how: str, sess: Any, caught: Any) -> None:
    w = fb.Variable(1.0, name="w")
    loss = fb.square(w) + 1.0
    for _ in range(MANY):
        if how == "gradients":
            sess.run(fb.gradients(loss, w))  # asks for a gradient
        else:
            sess.run(fb.train.GradientDescentOptimizer(0.1).minimize(loss))  # asks for a training
    asks = {"gradients": "# asks for a gradient", "minimize": "# asks for a training"}[how]
    [message] = told(caught)
    assert f"at test_repetition.py, line {line_of(asks)}: " in message


def test_a_function_called_in_a_loop_names_both_lines(sess: Any, caught: Any) -> None:
    def build(i: int) -> Any:
        return fb.constant(float(i))  # builds

    def run(tensor: Any) -> Any:
        return sess.run(tensor)

    i = 0
    while i < MANY:
        y = build(i)  # calls
        i += 1
        run(y)
    [message] = told(caught)
    assert f"at test_repetition.py, line {line_of('# builds')}:  " in message
    assert f"in the loop at test_repetition.py, line {line_of('# calls')}:  y = build" in message


def test_generators_comprehensions_and_callables(sess: Any, caught: Any) -> None:
    x = fb.placeholder(fb.float32, [])
    call = sess.make_callable(x, [x])

    def built() -> Iterator[Any]:
        for i in range(MANY):
            yield fb.constant(float(i))

    for tensor in built():
        sess.run(tensor)
    assert len(told(caught)) == 1
    assert len([sess.run(fb.constant(float(i))) for i in range(MANY)]) == MANY
    assert len(told(caught)) == 2
    for i in range(MANY):
        fb.identity(x)
        call(i)
    assert len(told(caught)) == 3


def test_tasks_and_threads(sess: Any, caught: Any) -> None:
    async def work() -> None:
        for i in range(MANY):
            sess.run(fb.constant(float(i)))
            await asyncio.sleep(0)

    asyncio.run(work())
    assert len(told(caught)) == 1
    thread = threading.Thread(target=lambda: [sess.run(fb.constant(0.0)) for _ in range(MANY)])
    thread.start()
    thread.join()
    assert len(told(caught)) == 2


def test_awaiting_is_no_loop(sess: Any) -> None:
    async def build_and_run(i: int) -> None:
        async def built() -> Any:
            await asyncio.sleep(0)
            return fb.constant(float(i))

        sess.run(await built())

    loop = asyncio.new_event_loop()
    call_from_many_places(lambda i: loop.run_until_complete(build_and_run(i)))
    loop.close()


def test_a_deep_model_and_unrolled_steps_are_fine(sess: Any) -> None:
    h = fb.ones([2, 2])
    for _ in range(1_000):
        h = fb.tanh(h)
    for _ in range(MANY):
        sess.run(h)


def test_a_loop_over_few_models_is_fine(sess: Any) -> None:
    h = fb.ones([2, 2])
    for _ in range(repetition._RUNS):
        h = fb.tanh(h)
        sess.run(h)


def test_graphs_of_their_own_are_fine() -> None:
    for i in range(MANY):
        with fb.Graph().as_default():
            y = fb.constant(float(i))
            with fb.Session() as sess:
                sess.run(y)


def test_a_function_that_is_called_from_many_places_is_fine(sess: Any) -> None:
    """As from the cells of a notebook, or from tests: no loop of theirs builds and runs."""

    def model(x: Any) -> Any:
        for _ in range(3):
            x = fb.tanh(x)
        return x

    def train(y: Any) -> None:
        for _ in range(3):
            sess.run(y)

    def test(number: int) -> None:
        train(model(fb.constant(float(number))))

    call_from_many_places(test)


def test_a_function_that_is_mapped_is_told_of(sess: Any, caught: Any) -> None:
    """Python's own loop is one as well."""

    def build_and_run(i: int) -> Any:
        return sess.run(fb.constant(float(i)))  # mapped

    list(map(build_and_run, range(MANY)))
    [message] = told(caught)
    assert f"at test_repetition.py, line {line_of('# mapped')}:  " in message


def test_the_loop_of_a_package_is_none_of_the_users(sess: Any) -> None:
    """As that of a test runner, which calls what users wrote."""
    where = pathlib.Path(np.__file__).with_name("runner.py")
    runner: dict[str, Any] = {}
    exec(compile("def run(calls):\n for call in calls: call()", where, "exec"), runner)
    runner["run"]([lambda: sess.run(fb.constant(1.0))] * MANY)


@pytest.mark.parametrize("number", range(MANY))
def test_a_parametrized_test_is_fine(number: int, shared: Any) -> None:
    graph, sess = shared
    with graph.as_default():
        y = fb.constant(float(number))
        for _ in range(2):
            sess.run(y)


@pytest.fixture(scope="module")
def shared() -> Any:
    graph = fb.Graph()
    return graph, fb.Session(graph)


def test_another_thread_that_builds_is_not_blamed(sess: Any) -> None:
    """Who builds and who runs do not stand in one loop."""
    y = fb.constant(1.0)
    for _ in range(MANY):
        thread = threading.Thread(target=fb.identity, args=(y,))
        thread.start()
        thread.join()
        sess.run(y)


def test_a_plain_script() -> None:
    script = (
        "import flowbook as fb\nsess = fb.Session()\nfor i in range(40):\n"
        "    sess.run(fb.constant(float(i)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("GraphGrowthWarning: a loop builds and runs") == 1
    assert done.stderr.startswith("<string>:4: ")


def test_old_lines_are_let_go(sess: Any) -> None:
    for _ in range(MANY):
        code = compile("y = fb.constant(1.0)", "<made>", "exec")
        exec(code, {"fb": fb})
        sess.run(fb.get_default_graph().operations[-1])
    assert len(sess.graph.members.repetition._lines) <= 2 * repetition._RUNS
