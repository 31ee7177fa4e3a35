"""Branches and loops as Python's own: what they compute, when they let go of values, what fails."""

import gc
import signal
import sys
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.engine import segment
from flowbook.exec.engine.code import lowering
from flowbook.exec.engine.runner import Runner
from flowbook.exec.plan.failure import StepFailed, deadline_after
from flowbook.graph.model.touch import ASSERTS
from tests.exec.state.executors import runner_of

LATER = 100.0
MODULUS = 1009
STATE = 3
REFUSAL = "refusal"


def written(runner: Runner, with_deadline: bool = False) -> str:
    """The code that a program runs as."""
    assert runner._lowered is not None
    return runner._generate(runner._setting, with_deadline).text


def lines(runner: Runner) -> list[str]:
    return written(runner).splitlines()[1:]


# Random programs: assignments, draws, writes, failures, in branches and loops in each other.


def _refuse(xp: Any, x: Any, limit: int) -> Any:
    if x > limit:
        raise ValueError(f"{int(x)} is more than {limit}")
    return x


refuse = fb.OpDef(
    "RefuseInLowering",
    "x: int32 -> y: int32",
    attributes={"limit": 0},
    infer=lambda x, limit: x.shape,
    kernel=_refuse,
    touches=ASSERTS,
)


_others = ThreadPoolExecutor(1)

wait = fb.OpDef(
    "WaitInLowering",
    "x: int32 -> y: int32",
    infer=lambda x: x.shape,
    kernel=lambda context, x: _others.submit(context.complete, (x,)),
    is_async=True,
)


pause = fb.OpDef(
    "PauseInLowering",
    "-> y: int32",
    infer=lambda: [()],
    kernel=lambda context: _others.submit(context.complete, (context.xp.zeros((), np.int32),)),
    touches=fb.Touch(fb.Access.OUTSIDE),
    is_async=True,
)


class Failed(Exception):
    """What a program in plain Python does where an operation refuses its input."""


def interpret(statements: Any, state: list[int], variable: list[int]) -> None:
    """What a program means, in plain Python."""
    for statement in statements:
        match statement:
            case ("set", target, left, right, constant):
                state[target] = (state[left] * 3 + state[right] + constant) % MODULUS
            case ("copy", target, source) | ("wait", target, source):
                state[target] = state[source]
            case ("constant", target, constant):
                state[target] = constant
            case ("write", target, source):
                variable[0] = variable[0] * 2 + state[source] - variable[0]
                state[target] = variable[0] % MODULUS
            case ("act", source):
                variable[0] += state[source]
            case ("read", target):
                state[target] = variable[0] % MODULUS
            case ("pause", target, a, b, yes, no):
                variable[0] += yes if state[a] < state[b] else no
                state[target] = variable[0] % MODULUS
            case ("refuse", target, source, limit):
                if state[source] > limit:
                    raise Failed
                state[target] = state[source]
            case ("if", a, b, yes, no):
                interpret(yes if state[a] < state[b] else no, state, variable)
            case ("while", counter, limit, body):
                count = 0
                while count < state[counter] % 4 and state[limit] < 900:
                    interpret(body, state, variable)
                    count += 1


def build(
    statements: Any,
    state: list[Any],
    variable: fb.Variable,
    ends: list[Any] | None = None,
    last: list[Any] | None = None,
) -> list[Any]:
    """The same program as operations; `state` are tensors.

    Args:
        statements: the program.
        state: the tensors that it begins with.
        variable: what it writes to.
        ends: takes what is there when what each statement does has been done.
        last: what the variable is read behind, if it has been written; takes what that is at the
            end of the program.
    """
    state = list(state)
    last = [] if last is None else last
    for statement in statements:
        match statement:
            case ("set", target, left, right, constant):
                state[target] = (state[left] * 3 + state[right] + constant) % MODULUS
            case ("copy", target, source):
                state[target] = fb.identity(state[source])
            case ("wait", target, source):
                state[target] = wait(state[source])
            case ("constant", target, constant):
                state[target] = fb.constant(constant)
            case ("write", target, source):
                state[target] = fb.assign_add(variable, state[source]) % MODULUS
                last[:] = [state[target].op]
            case ("act", source):
                with fb.control_dependencies([fb.assign_add(variable, state[source])]):
                    state[source] = fb.identity(state[source])
                last[:] = [state[source].op]
            case ("read", target):
                with fb.control_dependencies(last):
                    state[target] = fb.identity(variable) % MODULUS
            case ("pause", target, a, b, yes, no):
                state[target] = fb.cond(
                    state[a] < state[b],
                    lambda yes=yes: paused(variable, yes),
                    lambda no=no: paused(variable, no),
                )
                last[:] = [state[target].op]
            case ("draw", target, source):
                drawn = fb.random_uniform([], 0, MODULUS, fb.int32, seed=7)
                state[target] = (state[source] + drawn) % MODULUS
            case ("refuse", target, source, limit):
                state[target] = refuse(state[source], limit=limit, name=REFUSAL)
            case ("if", a, b, yes, no):
                inside = [[*last], [*last]]
                state = fb.cond(
                    state[a] < state[b],
                    lambda yes=yes, state=state, own=inside[0]: build(
                        yes, state, variable, last=own
                    ),
                    lambda no=no, state=state, own=inside[1]: build(no, state, variable, last=own),
                )
                if inside != [last, last]:
                    last[:] = [state[0].op]
            case ("while", counter, limit, body):
                own = [*last]
                state = build_loop(counter, limit, body, state, variable, own)
                if own != last:
                    last[:] = [state[0].op]
        if ends is not None:
            ends.append(state[changed(statement)].op)
    return state


def paused(variable: fb.Variable, constant: int) -> fb.Tensor:
    """A write that takes nothing from outside of its branch, behind what waits there."""
    with fb.control_dependencies([pause()]):
        return fb.assign_add(variable, constant) % MODULUS


def changed(statement: Any) -> int:
    """The place of a value that a statement gives."""
    match statement:
        case ("if", *_) | ("while", *_):
            return 0
    return int(statement[1])


def build_loop(
    counter: int,
    limit: int,
    body: Any,
    state: list[Any],
    variable: fb.Variable,
    last: list[Any],
) -> list[Any]:
    return fb.while_loop(
        lambda count, state: fb.logical_and(count < state[counter] % 4, state[limit] < 900),
        lambda count, state: (count + 1, build(body, state, variable, last=last)),
        (0, state),
    )[1]


places = st.integers(0, STATE - 1)
pure = [
    st.tuples(st.just("set"), places, places, places, st.integers(0, 9)),
    st.tuples(st.just("copy"), places, places),
    st.tuples(st.just("constant"), places, st.integers(0, 9)),
]
assignments = [
    *pure,
    st.tuples(st.just("write"), places, places),
    st.tuples(st.just("act"), places),
    st.tuples(st.just("read"), places),
]
draws = st.tuples(st.just("draw"), places, places)
waits = st.tuples(st.just("wait"), places, places)
pauses = st.tuples(st.just("pause"), places, places, places, st.integers(1, 9), st.integers(1, 9))
refusals = st.tuples(st.just("refuse"), places, places, st.integers(0, 600))


def programs(*more: Any, plain: Any = assignments) -> Any:
    """Lists of statements, in each other."""
    plain = [*plain, *more]
    return st.recursive(
        st.lists(st.one_of(plain), max_size=3),
        lambda inner: st.lists(
            st.one_of(
                *plain,
                st.tuples(st.just("if"), places, places, inner, inner),
                st.tuples(st.just("while"), places, places, inner),
            ),
            max_size=4,
        ),
        max_leaves=8,
    )


starts = st.lists(st.integers(0, 50), min_size=STATE, max_size=STATE)


def reference(runner: Runner, feeds: list[Any]) -> Any:
    return runner.run_reference(feeds)


def whole(runner: Runner, feeds: list[Any]) -> Any:
    assert runner._lowered is not None or not runner._is_routed
    runner.write()
    return runner.run(feeds)


def timed(runner: Runner, feeds: list[Any]) -> Any:
    runner.write()
    return runner.run(feeds, deadline_after(LATER))


def split(runner: Runner, feeds: list[Any]) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "LONGEST", 2)
        return runner.run_regions(feeds)


EXECUTORS = [reference, whole, timed, split]


class Built:
    """A program as a graph."""

    def __init__(self, program: Any, steps: int = 1) -> None:
        self.graph = fb.Graph()
        self.steps = steps
        with self.graph.as_default():
            self.feeds = [fb.placeholder(fb.int32, []) for _ in range(STATE)]
            self.variable = fb.Variable(1, name="variable")
            ends: list[Any] = []
            self.values = build(program, self.feeds, self.variable, ends)
            self.fetches = [*self.values, *ends]

    def run(self, by: Any, start: Any) -> Any:
        """What some steps give, and what the variable is then."""
        with fb.Session(self.graph) as sess:
            sess.run(self.variable.initializer)
            feeds = dict(zip(self.feeds, start, strict=True))
            _, runner = runner_of(sess, self.fetches, feeds)
            given = [np.asarray(v, np.int32) for v in start]
            found = []
            try:
                for _ in range(self.steps):
                    values = by(runner, given)
                    found.append([int(v) for v in values[:STATE]])
            except StepFailed as error:
                name = runner._part.nodes[error.failure.node].name
                found.append((name.rpartition("/")[2], error.failure.where))
            return found, int(sess.run(self.variable))


# The two sides of the branch are two statements, between which code may not be cut.
IN_PIECES = [("act", 0), ("constant", 0, 0), ("if", 0, 0, [("set", 0, 0, 0, 0)], [("write", 0, 0)])]


@settings(max_examples=120)
@example(IN_PIECES, [0, 0, 0])
@given(programs(), starts)
def test_all_executors_do_what_python_does(program: Any, start: Any) -> None:
    state, variable = list(start), [1]
    interpret(program, state, variable)
    built = Built(program)
    for by in EXECUTORS:
        assert built.run(by, start) == ([state], variable[0])


def checked(runner: Runner, feeds: list[Any]) -> Any:
    return runner.run_checked(feeds)


# What is read behind a branch that is not taken is read behind what that waits for.
READ_BEHIND_BRANCH = [
    *[("wait", 0, 0), ("write", 0, 0), ("constant", 0, 0)],
    *[("if", 0, 0, [("write", 0, 0)], []), ("read", 0)],
]


@settings(max_examples=120, deadline=None)
@example([("pause", 0, 0, 0, 5, 3)], [0, 0, 0])
@example(READ_BEHIND_BRANCH, [4, 0, 0])
@given(programs(waits, pauses), starts)
def test_what_waits_changes_nothing_else(program: Any, start: Any) -> None:
    state, variable = list(start), [1]
    interpret(program, state, variable)
    built = Built(program)
    for by in [reference, checked, timed, split]:
        assert built.run(by, start) == ([state], variable[0])


@settings(max_examples=80)
@given(programs(draws), starts)
def test_draws_are_the_same_in_all_executors(program: Any, start: Any) -> None:
    built = Built(program, steps=2)
    expected = built.run(reference, start)
    for by in EXECUTORS[1:]:
        assert built.run(by, start) == expected


@settings(max_examples=80)
@given(programs(), refusals, programs(), st.booleans(), places, starts)
def test_the_same_node_fails_in_all_executors(
    before: Any, refusal: Any, after: Any, in_loop: bool, place: int, start: Any
) -> None:
    inner = [*before, refusal]
    where = ("while", place, place, inner) if in_loop else ("if", 0, 1, inner, after)
    program = [where, *after]
    state, variable = list(start), [1]
    places_of = set()
    try:
        interpret(program, state, variable)
        expected: Any = state
    except Failed:
        expected = REFUSAL
    built = Built(program)
    for by in EXECUTORS:
        [found], _ = built.run(by, start)
        if expected == REFUSAL:
            found, where = found
            places_of.add(where)
        assert found == expected
    assert len(places_of) <= 1


# What the code looks like


@pytest.fixture
def sess():
    with fb.Session() as session:
        yield session


def structure_of(sess: fb.Session, fetch: Any, feeds: Any) -> Any:
    """What the state machine sees of a step that has run before, and what the step gives."""
    _, runner = runner_of(sess, [fetch], feeds)
    runner.write()
    (found,) = runner.run([np.asarray(v, np.int32) for v in feeds.values()])
    return runner._regions, found


def test_what_does_not_wait_is_code_beside_what_does(sess: fb.Session) -> None:
    x, y = fb.placeholder(fb.int32, []), fb.placeholder(fb.int32, [])
    late = wait(x)
    (last,) = fb.while_loop(
        lambda v: v < 100, lambda v: fb.cond(v > 9, lambda: v * 2, lambda: v + 1), (late,)
    )
    found = last + fb.cond(y > 0, lambda: y, lambda: -y)
    structure, value = structure_of(sess, found, {x: 3, y: -5})
    assert value == 165
    # Before what waits, it, and after it.
    assert len(structure.units) == 3


def test_of_a_branch_that_waits_the_rest_is_code(sess: fb.Session) -> None:
    x = fb.placeholder(fb.int32, [])

    def slow() -> Any:
        return fb.while_loop(lambda v: v < 50, lambda v: v + 7, (wait(x),))

    (found,) = fb.cond(x > 0, slow, lambda: (x - 1,))
    found *= 3
    structure, value = structure_of(sess, found, {x: 3})
    assert value == 156
    assert list(structure.frames) == [""]
    assert structure_of(sess, found, {x: -3})[1] == -12


def test_a_loop_in_which_something_waits_goes_round_by_itself(sess: fb.Session) -> None:
    x = fb.placeholder(fb.int32, [])
    (found,) = fb.while_loop(lambda v: v < 50, lambda v: wait(v) + 7, (x * x,))
    structure, value = structure_of(sess, found + 1, {x: 3})
    assert value == 52
    assert len(structure.frames) == 2


def test_what_writes_within_branches_and_loops_is_known_to_write(sess: fb.Session) -> None:
    x = fb.placeholder(fb.int32, [])
    variable = fb.Variable(1, name="variable")
    late = wait(x)
    loop = fb.while_loop(lambda i: i < 3, lambda i: i + fb.assign_add(variable, 1) * 0 + 1, [late])
    branch = fb.cond(late > 0, lambda: fb.assign_add(variable, 1), lambda: late)
    for fetch in (loop[0], branch):
        structure, _ = structure_of(sess, fetch, {x: 1})
        assert len(structure.writing) == 1


def test_a_variable_may_end_before_its_loop(sess: fb.Session) -> None:
    flow = fb.control_flow
    x = fb.placeholder(fb.int32, [])
    first, second = flow.merge([flow.enter(x, "loop")]), flow.merge([flow.enter(x, "loop")])
    goes_on = flow.loop_cond(wait(first.output) < 50)
    one, other = flow.switch(first.output, goes_on), flow.switch(second.output, goes_on)
    flow.next_iteration(one.output_true + 7, first)
    doubled = other.output_true * 2
    flow.next_iteration(flow.switch(doubled, doubled < 20).output_true, second)
    found, _ = flow.merge([flow.exit(one.output_false), flow.exit(other.output_false)])
    for _ in range(3):
        assert sess.run(found, {x: 3}) == 52


def test_a_branch_is_an_if(sess: fb.Session) -> None:
    x = fb.placeholder(fb.float32, [2])
    p = fb.placeholder(fb.bool, [])
    y = fb.cond(p, lambda: fb.exp(fb.negative(x)), lambda: x)
    _, runner = runner_of(sess, y, {x: None, p: None})
    assert lines(runner) == [
        "    b0 = None",
        "    if f1:",
        "        b0 = 1",
        "        f0 = xp_negative(f0)",
        "        v1 = xp_exp(f0); f0 = None",
        "    else:",
        "        b0 = 0",
        "        v1 = f0; f0 = None",
        "    ran[0] = next(number), b0",
        "    return (copied(v1),)",
    ]


def test_a_loop_is_a_while(sess: fb.Session) -> None:
    n = fb.placeholder(fb.int32, [])
    last, total = fb.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t + i), (0, 0))
    _, runner = runner_of(sess, [last, total], {n: None})
    assert lines(runner) == [
        "    t0 = 0",
        "    v1 = c0",
        "    v2 = c0",
        "    f0 = f0[()]",
        "    for i0 in count():",
        "        if executions.is_closed: raise session_closed()",
        "        v3 = v1 < f0",
        "        if not v3:",
        "            break",
        "        v3 = v1 + n2",
        "        v2 = v2 + v1; v1 = None",
        "        v1 = v3; v3 = None",
        "    t0 += i0",
        "    f0 = None",
        "    ran[0] = next(number), t0",
        "    return (copied(v1), copied(v2),)",
    ]
    timed = written(runner, with_deadline=True)
    # At every unit, and where the loop goes back.
    assert timed.count("if clock() > deadline: raise late()") == 4


def test_variables_that_change_places_need_no_more_locals(sess: fb.Session) -> None:
    n = fb.placeholder(fb.int32, [])
    loop_vars = (0, fb.zeros([2]), fb.ones([2]))
    _, a, b = fb.while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, b, a), loop_vars)
    _, runner = runner_of(sess, [a, b], {n: None})
    assert "v2, v3 = v3, v2" in written(runner)
    for trips in (0, 1, 2, 3):
        found = [v.tolist() for v in runner.run([np.int32(trips)])]
        assert found == [[trips % 2] * 2, [1 - trips % 2] * 2]


def test_a_known_place_of_a_merge_is_a_literal(sess: fb.Session) -> None:
    x = fb.placeholder(fb.float32, [])
    no, yes = fb.control_flow.switch(x, x > 0)
    y, place = fb.control_flow.merge([no, fb.exp(yes)])
    _, runner = runner_of(sess, [y, place], {x: None})
    for value in (-1.0, 0.0):
        for _ in range(3):
            assert runner.run([np.float32(value)])[1] == 0
    assert runner.run([np.float32(2.0)])[1] == 1
    assert written(runner).count("xp_exp") == 1


def test_a_branch_of_which_parts_need_each_other_is_split(sess: fb.Session) -> None:
    """Two conds of one predicate, the second of which takes what the first gave."""
    p = fb.placeholder(fb.bool, [])
    x = fb.placeholder(fb.float32, [])
    y = fb.cond(p, lambda: x + 1.0, lambda: x - 1.0)
    z = fb.cond(p, lambda: fb.exp(y) * x, lambda: fb.sin(y))
    _, runner = runner_of(sess, z, {p: None, x: None})
    text = written(runner)
    for value in (True, False):
        feeds = [np.bool_(value), np.float32(0.5)]
        assert list(runner.run(feeds)) == runner.run_reference(feeds)
    assert text.count("if f0:") == 1


def _on(side: Any, with_loop: bool) -> Any:
    """Something that is computed on one side of a Switch, and is a loop or none."""
    if not with_loop:
        return side * 2.0
    (last,) = fb.while_loop(lambda s: fb.reduce_sum(s) < 50.0, lambda s: [s * s + 1.0], [side])
    return last


@pytest.mark.parametrize("with_loop", [False, True])
def test_what_both_sides_make_for_later_has_two_locals(sess: fb.Session, with_loop: bool) -> None:
    """That of one side ends long before that of the other, and its local is taken again."""
    p = fb.placeholder(fb.bool, [])
    x = fb.placeholder(fb.float32, [4])
    ended = fb.concat([fb.tanh(x), fb.sin(x), fb.cos(x)], 0)  # Leaves locals free.
    false, true = fb.control_flow.switch(ended[:4] + x, p)
    y, _ = fb.control_flow.merge([false - 1.0, true - 2.0])
    for_true, for_false = _on(true, with_loop), _on(false, with_loop)
    false, true = fb.control_flow.switch(fb.exp(y), p)
    y, _ = fb.control_flow.merge([false * 5.0, true + for_true])
    y = fb.sin(y)
    y += fb.cos(y)
    false, true = fb.control_flow.switch(y, p)
    y, _ = fb.control_flow.merge([false + for_false, true])
    _, runner = runner_of(sess, y, {p: None, x: None})
    for value in (True, False):
        feeds = [np.bool_(value), np.arange(4, dtype=np.float32) / 7]
        np.testing.assert_array_equal(runner.run(feeds)[0], runner.run_reference(feeds)[0])
        np.testing.assert_array_equal(whole(runner, feeds)[0], runner.run_reference(feeds)[0])


def test_a_first_value_that_iterations_take_too_keeps_its_local(sess: fb.Session) -> None:
    x = fb.placeholder(fb.float32, [2])
    y = fb.exp(x)
    (z,) = fb.while_loop(lambda s: fb.reduce_sum(s) < 50.0, lambda s: [s + y], [y])
    _, runner = runner_of(sess, z, {x: None})
    feeds = [np.float32([0.0, 1.0])]
    np.testing.assert_array_equal(whole(runner, feeds)[0], runner.run_reference(feeds)[0])


def test_a_read_outside_goes_before_a_write_in_a_branch(sess: fb.Session) -> None:
    """It was built after the write, and nothing orders it: it sees the value from before."""
    variable = fb.Variable(0.0)
    x = fb.placeholder(fb.float32, [])
    written_to = fb.cond(x > 0, lambda: fb.assign_add(variable, x * x), lambda: x)
    before = variable * 10.0
    for turn in range(4):
        assert sess.run([written_to, before], {x: 1.0}) == [turn + 1, turn * 10]


# What has no such form runs by the state machine


def test_a_dead_fetch_is_refused_by_the_reference(sess: fb.Session) -> None:
    x = fb.placeholder(fb.float32, [])
    no, _ = fb.control_flow.switch(x, x > 0)
    _, runner = runner_of(sess, no, {x: None})
    assert runner._lowered is None
    for _ in range(3):
        assert sess.run(no, {x: -1.0}) == -1.0
        with pytest.raises(fb.errors.InvalidArgumentError, match="branch that was not taken"):
            sess.run(no, {x: 1.0})


def test_a_merge_of_what_may_be_dead_on_both_sides_is_not_lowered(sess: fb.Session) -> None:
    x, y = fb.placeholder(fb.float32, []), fb.placeholder(fb.float32, [])
    one, _ = fb.control_flow.switch(x, x > 0)
    _, other = fb.control_flow.switch(y, y > 0)
    merged, _ = fb.control_flow.merge([one, other])
    _, runner = runner_of(sess, merged, {x: None, y: None})
    assert runner._lowered is None
    for _ in range(3):
        assert sess.run(merged, {x: 1.0, y: 2.0}) == 2.0
        assert sess.run(merged, {x: -1.0, y: -2.0}) == -1.0


def test_what_is_too_deep_for_python_is_not_lowered(sess: fb.Session) -> None:
    x = fb.placeholder(fb.int32, [])

    def nested(depth: int, x: Any) -> Any:
        if not depth:
            return x + 1
        return fb.while_loop(
            lambda i, x: i < 1, lambda i, x: (i + 1, nested(depth - 1, x)), (0, x)
        )[1]

    for depth, is_lowered in ((lowering.DEEPEST, True), (lowering.DEEPEST + 1, False)):
        y = nested(depth, x)
        _, runner = runner_of(sess, y, {x: None})
        assert (runner._lowered is not None) is is_lowered
        for _ in range(3):
            assert sess.run(y, {x: 3}) == 4


# Errors


@pytest.mark.parametrize("kind", ["cond", "while"])
def test_a_predicate_that_is_no_scalar_is_refused(sess: fb.Session, kind: str) -> None:
    p = fb.placeholder(fb.bool)
    if kind == "cond":
        y = fb.cond(p, lambda: fb.constant(1), lambda: fb.constant(2))
    else:
        y = fb.while_loop(lambda i: fb.logical_and(i < 3, p), lambda i: i + 1, [0])[0]
    expected = {"cond": 1, "while": 3}[kind]
    for _ in range(3):
        assert sess.run(y, {p: True}) == expected
    messages = set()
    for timeout in (None, LATER):
        with pytest.raises(fb.errors.InvalidArgumentError, match="no scalar") as caught:
            sess.run(y, {p: [True, False]}, timeout=timeout)
        messages.add(str(caught.value))
    with fb.Session() as other, pytest.raises(fb.errors.InvalidArgumentError) as caught:
        other.run(y, {p: [True, False]})
    messages.add(str(caught.value))
    assert len(messages) == 1


def test_shapes_that_are_not_sure_are_checked(sess: fb.Session) -> None:
    """A feed replaces a constant from which shapes were inferred."""
    x = fb.placeholder(fb.float32, [2])
    shape = fb.constant([2, 1])
    y = fb.cond(x[0] > 0, lambda: fb.reshape(x, shape), lambda: fb.zeros([2, 1]))
    for _ in range(3):
        assert sess.run(y, {x: [1.0, 2.0], shape: [2, 1]}).shape == (2, 1)
        with pytest.raises(fb.errors.InvalidArgumentError, match="a feed replaced a constant"):
            sess.run(y, {x: [1.0, 2.0], shape: [1, 2]})


# What is let go, and when


class Watched:
    """An operation that notes which of its results are still alive when it runs next."""

    def __init__(self, type_: str) -> None:
        self.references: list[Any] = []
        self.alive: list[Any] = []
        self.op = fb.OpDef(
            type_,
            "inputs: N*float32 -> output: float32",
            attributes={"note": ""},
            infer=lambda inputs, note: fb.Shape([4]),
            kernel=self.run,
            aliases={},
        )

    def run(self, xp: Any, *inputs: Any, note: str) -> Any:
        gc.collect()
        self.alive.append((note, [n for n, made in self.references if made() is not None]))
        made = np.zeros(4, np.float32)
        self.references.append((note, weakref.ref(made)))
        return made


@pytest.mark.parametrize("timeout", [None, LATER])
def test_an_iteration_lets_go_of_the_one_before(sess: fb.Session, timeout: float | None) -> None:
    watched = Watched("WatchedInLoops")
    outside = watched.op([], note="outside")

    def body(i: Any, t: Any) -> Any:
        a = watched.op([t], note="a")
        return i + 1, watched.op([a, outside], note="b")

    first = watched.op([], note="first")
    _, last = fb.while_loop(lambda i, _: i < 3, body, (0, first))
    end = watched.op([last], note="end")
    sess.run(end, timeout=timeout)
    watched.references.clear()
    watched.alive.clear()
    sess.run(end, timeout=timeout)
    assert watched.alive == [
        ("outside", []),
        ("first", ["outside"]),
        ("a", ["outside", "first"]),
        ("b", ["outside", "a"]),
        ("a", ["outside", "b"]),
        ("b", ["outside", "a"]),
        ("a", ["outside", "b"]),
        ("b", ["outside", "a"]),
        ("end", ["b"]),
    ]


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_lets_go_of_what_the_other_one_needs(sess: fb.Session, taken: bool) -> None:
    watched = Watched(f"WatchedInBranches{taken}")
    p = fb.placeholder(fb.bool, [])
    one, other = watched.op([], note="one"), watched.op([], note="other")

    def side(name: str, value: Any) -> Any:
        return watched.op([watched.op([value], note=name)], note=f"{name} again")

    y = fb.cond(p, lambda: side("yes", one), lambda: side("no", other))
    end = watched.op([y], note="end")
    sess.run(end, {p: taken})
    watched.references.clear()
    watched.alive.clear()
    sess.run(end, {p: taken})
    name, used = ("yes", "one") if taken else ("no", "other")
    assert watched.alive == [
        ("one", []),
        ("other", ["one"]),
        (name, [used]),
        (f"{name} again", [name]),
        ("end", [f"{name} again"]),
    ]


def test_a_hundred_thousand_iterations_take_no_more_memory_than_one(sess: fb.Session) -> None:
    n = fb.placeholder(fb.int32, [])
    total = fb.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t * 0.5 + 1.0), (0, 0.0))[1]
    for _ in range(2):
        sess.run(total, {n: 1})
    peaks = []
    for trips in (10, 10**5):
        tracemalloc.start()
        sess.run(total, {n: trips})
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 10_000


# What stops a loop


def endless(variables: tuple[fb.Variable, fb.Variable], inner: Any = None) -> fb.Tensor:
    """A loop that ends only if one is written to and the other is not."""
    one, other = variables

    def body(i: Any) -> Any:
        first = fb.assign_add(one, np.ones(10))
        with fb.control_dependencies([first if inner is None else inner(first)]):
            second = fb.assign_add(other, np.ones(10))
        with fb.control_dependencies([second]):
            return i * 1

    return fb.while_loop(lambda i: i < 1, body, [0])[0]


def ones(count: int) -> tuple[fb.Variable, ...]:
    return tuple([fb.Variable(np.zeros(10)) for _ in range(count)])


def test_a_deadline_stops_an_endless_loop(sess: fb.Session) -> None:
    one, other = ones(2)
    y = endless((one, other))
    runs = 0
    while runs < 3 or not sess.run(one).any():  # On a busy machine none may have begun.
        with pytest.raises(fb.errors.DeadlineExceededError):
            sess.run(y, timeout=0.05)
        runs += 1
    _, runner = runner_of(sess, y)
    runner.write()
    with pytest.raises(StepFailed) as caught:
        runner.run([], deadline_after(0.05))
    assert isinstance(caught.value.failure.error, fb.errors.DeadlineExceededError)
    a, b = sess.run(one), sess.run(other)
    assert len({*a}) == len({*b}) == 1
    assert 0 <= a[0] - b[0] <= runs + 1  # One for each step that was stopped in between.


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_an_interrupt_stops_an_endless_loop(sess: fb.Session) -> None:
    one, other = ones(2)
    calls = []

    def interrupting(xp: Any, x: Any) -> Any:
        calls.append(1)
        if len(calls) % 1000 == 0:
            signal.raise_signal(signal.SIGINT)
        return x

    op = fb.OpDef(
        "InterruptingInLoops",
        "x: float64 -> y: float64",
        infer=lambda x: x.shape,
        kernel=interrupting,
    )
    y = endless((one, other), op)
    _, runner = runner_of(sess, y)
    runner.write()
    for number in range(1, 4):
        with pytest.raises(KeyboardInterrupt):
            runner.run([])
        assert sess.run(one).tolist() == [1000.0 * number] * 10
        assert sess.run(other).tolist() == [999.0 * number] * 10
