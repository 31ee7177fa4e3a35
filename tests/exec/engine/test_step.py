"""The state machine of a step: what becomes ready, what dies, what is let go, frame by frame.

Programs with loops and branches are written by hand as blocks of nodes, of any form; what they mean
is held against the same programs in plain Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.devices.local_devices import local_devices
from flowbook.exec.engine.engine import Engine
from flowbook.exec.engine.runner import Runner
from flowbook.exec.engine.step import Step
from flowbook.exec.engine.structure import Frame, Structure
from flowbook.exec.engine.units import LateFeed, Unit
from flowbook.exec.plan.memory import Ownership
from flowbook.exec.plan.program import Block, Feed, Part, PlanNode, Program
from flowbook.exec.resources.session_stores import SessionStores
from flowbook.graph.model.retag import DEAD, Retag
from flowbook.graph.model.shape import SCALAR


def _define(name: str, signature: str, kernel: Any, **properties: Any) -> str:
    definition = fb.OpDef(
        name,
        signature,
        T=(fb.int64,),
        infer=lambda *inputs, **_: [SCALAR] * signature.partition("->")[2].count(":"),
        kernel=kernel,
        aliases={},
        **properties,
    )
    KEPT.append(definition)
    return definition.key


KEPT: list[Any] = []

ENTER = _define(
    "StepTestEnter",
    "x: T -> y: T",
    lambda xp, x: x,
    retag=Retag.PUSH,
    attributes={"frame_name": "", "is_constant": False},
)
EXIT = _define("StepTestExit", "x: T -> y: T", lambda xp, x: x, retag=Retag.POP)
NEXT = _define("StepTestNext", "x: T -> y: T", lambda xp, x: x, retag=Retag.INCREMENT)
MERGE = _define(
    "StepTestMerge",
    "inputs: N*T -> y: T",
    lambda xp, *inputs: next(x for x in inputs if x is not DEAD),
    fires_on_any=True,
)
SWITCH = _define(
    "StepTestSwitch",
    "x: T, taken: bool -> no: T, yes: T",
    lambda xp, x, taken: (DEAD, x) if taken else (x, DEAD),
    gives_dead=True,
)


class Writer:
    """Writes blocks: nodes whose numbers are known when all blocks are."""

    def __init__(self) -> None:
        self.count = 0
        self.constants: dict[int, np.ndarray] = {}
        self.blocks: list[list[PlanNode]] = [[]]
        self.inner: dict[int, list[int]] = {0: []}
        self.frames = [""]
        self.parallel = [1]
        self.current = 0

    def value(self) -> int:
        self.count += 1
        return self.count - 1

    def constant(self, number: int) -> int:
        value = self.value()
        self.constants[value] = np.array(number, np.int64)
        return value

    def node(
        self, type_: str, *inputs: int, outputs: Sequence[int] | None = None, dtype: Any = fb.int64,
        **attributes: Any,
    ) -> int:  # fmt: skip
        if outputs is None:
            outputs = [self.value()]
        self.blocks[self.current].append(
            PlanNode(
                tuple(inputs),
                tuple(outputs),
                (),
                type_,
                attributes,
                (dtype,) * len(outputs),
                (SCALAR,) * len(outputs),
                None,
                type_,
                (),
            )
        )
        return outputs[0]

    def frame(self, parallel: int) -> int:
        self.blocks.append([])
        made = len(self.blocks) - 1
        self.inner[made] = []
        self.inner[self.current].append(made)
        self.frames.append(f"frame {made}")
        self.parallel.append(parallel)
        return made

    def block(self, which: int = 0) -> Block:
        return Block(
            tuple(self.blocks[which]),
            tuple([self.block(inner) for inner in self.inner[which]]),
            self.frames[which],
            self.parallel[which],
        )

    def run(self, feeds: Sequence[int], fetches: Sequence[int]) -> list[Any]:
        part = Part(
            local_devices()[0].name,
            tuple(range(len(feeds))),
            self.count,
            self.block(),
            tuple(fetches),
            (Ownership.FOREIGN,) * len(fetches),
            (),
            self.constants,
        )
        fed = tuple([Feed(f"feed {i}", fb.int64, SCALAR, False) for i in range(len(feeds))])
        program = Program(fed, tuple([(0, i) for i in range(len(fetches))]), (part,))
        runner = Runner(program, local_devices()[0], Engine(SessionStores(entropy=0)))
        values = [np.int64(v) for v in feeds]
        # The state machine first; then what runs by itself, which becomes code.
        ways = runner.run_reference, runner.run, runner.run, runner.run
        found = [list(map(int, run(values))) for run in ways]
        assert found[1:] == found[:-1]
        return found[0]


# A statement is ("set", target, left, right, constant), ("if", a, b, yes, no) or
# ("while", variable, parallel iterations, body); variables are numbered.
VARIABLES = 3


def interpret(statements: Any, state: list[int]) -> None:
    """What a program means, in plain Python."""
    for statement in statements:
        match statement:
            case ("set", target, left, right, constant):
                state[target] = (state[left] * 3 + state[right] + constant) % 1009
            case ("if", a, b, yes, no):
                interpret(yes if state[a] < state[b] else no, state)
            case ("while", variable, _, body):
                for _ in range(state[variable] % 4):
                    interpret(body, state)


def write(writer: Writer, statements: Any, state: list[int]) -> None:
    """The same program as blocks of nodes; `state` has the value of each variable."""
    for statement in statements:
        match statement:
            case ("set", target, left, right, constant):
                total = writer.node("Mul", state[left], writer.constant(3))
                total = writer.node("Add", total, state[right])
                total = writer.node("Add", total, writer.constant(constant))
                state[target] = writer.node("Mod", total, writer.constant(1009))
            case ("if", a, b, yes, no):
                taken = writer.node("Less", state[a], state[b], dtype=fb.bool)
                sides = [[], []]
                for value in state:
                    outputs = [writer.value(), writer.value()]
                    writer.node(SWITCH, value, taken, outputs=outputs)
                    for side, output in zip(sides, outputs, strict=True):
                        side.append(output)
                write(writer, no, sides[0])
                write(writer, yes, sides[1])
                state[:] = [writer.node(MERGE, *pair) for pair in zip(*sides, strict=True)]
            case ("while", variable, parallel, body):
                write_loop(writer, variable, parallel, body, state)


def write_loop(writer: Writer, variable: int, parallel: int, body: Any, state: list[int]) -> None:
    trips = writer.node("Mod", state[variable], writer.constant(4))
    zero = writer.node("Mul", trips, writer.constant(0))
    outer, inner = writer.current, writer.frame(parallel)
    name = writer.frames[inner]
    enter = [writer.node(ENTER, v, frame_name=name, is_constant=False) for v in (zero, *state)]
    limit = writer.node(ENTER, trips, frame_name=name, is_constant=True)
    writer.current = inner
    back = [writer.value() for _ in enter]
    merged = [writer.node(MERGE, *pair) for pair in zip(enter, back, strict=True)]
    goes_on = writer.node("Less", merged[0], limit, dtype=fb.bool)
    leaving, staying = [], []
    for value in merged:
        outputs = [writer.value(), writer.value()]
        writer.node(SWITCH, value, goes_on, outputs=outputs)
        leaving.append(outputs[0])
        staying.append(outputs[1])
    counted = writer.node("Add", staying[0], writer.constant(1))
    changed = staying[1:]
    write(writer, body, changed)
    for value, output in zip((counted, *changed), back, strict=True):
        writer.node(NEXT, value, outputs=[output])
    state[:] = [writer.node(EXIT, value) for value in leaving[1:]]
    writer.current = outer


variables = st.integers(0, VARIABLES - 1)
settings_of = st.tuples(st.just("set"), variables, variables, variables, st.integers(0, 9))
programs = st.recursive(
    st.lists(settings_of, max_size=3),
    lambda inner: st.lists(
        st.one_of(
            settings_of,
            st.tuples(st.just("if"), variables, variables, inner, inner),
            st.tuples(st.just("while"), variables, st.integers(1, 3), inner),
        ),
        max_size=3,
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(programs, st.lists(st.integers(0, 50), min_size=VARIABLES, max_size=VARIABLES))
def test_loops_and_branches_mean_what_they_mean_in_python(program: Any, start: list[int]) -> None:
    expected = list(start)
    interpret(program, expected)
    writer = Writer()
    state = [writer.value() for _ in start]
    write(writer, program, state)
    assert writer.run(start, state) == expected


@pytest.mark.parametrize("parallel", [1, 2, 10])
@pytest.mark.parametrize("trips", [0, 1, 3])
def test_a_loop_gives_its_last_values(parallel: int, trips: int) -> None:
    program = [("while", 0, parallel, [("set", 1, 1, 2, 1)])]
    expected = [trips, 1, 2]
    interpret(program, expected)
    writer = Writer()
    state = [writer.value() for _ in range(3)]
    write(writer, program, state)
    assert writer.run([trips, 1, 2], state) == expected


def test_a_loop_in_a_branch_that_is_not_taken_never_runs() -> None:
    ran: list[int] = []
    noted = _define("StepTestNoted", "x: T -> y: T", lambda xp, x: (ran.append(int(x)), x)[1])
    writer = Writer()
    a, b = writer.value(), writer.value()
    taken = writer.node("Less", a, b, dtype=fb.bool)
    no, yes = writer.value(), writer.value()
    writer.node(SWITCH, a, taken, outputs=[no, yes])
    state = [yes, yes, yes]
    write_loop(writer, 0, 2, [("set", 1, 1, 1, 0)], state)
    looped = writer.node(noted, state[1])
    merged = writer.node(MERGE, no, looped)
    assert writer.run([5, 4], [merged]) == [5]
    assert ran == []
    assert writer.run([2, 4], [merged]) == [(2 * 4) * 4]
    assert ran == [32] * 4


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_loops_in_each_other_that_are_dead_end_once(depth: int) -> None:
    """In its last iteration each loop's body is dead, and all loops in that."""

    def nested(depth: int, x: Any) -> Any:
        if not depth:
            return x + 1
        return fb.while_loop(
            lambda i, _: i < 2, lambda i, x: (i + 1, nested(depth - 1, x)), (0, x)
        )[1]

    y = nested(depth, fb.constant(0))
    with fb.Session() as sess:
        assert sess.run(y) == 2**depth


def test_what_a_branch_not_taken_would_give_cannot_be_fetched() -> None:
    writer = Writer()
    a, b = writer.value(), writer.value()
    taken = writer.node("Less", a, b, dtype=fb.bool)
    no, yes = writer.value(), writer.value()
    writer.node(SWITCH, a, taken, outputs=[no, yes])
    dead = writer.node("Neg", yes)
    from flowbook.exec.plan.failure import StepFailed

    with pytest.raises(StepFailed, match="branch that was not taken"):
        writer.run([2, 1], [dead])


# The machine alone


def unit(inputs: Any = (), outputs: Any = (), after: Any = (), kind: Any = Unit) -> Unit:
    return kind(tuple(inputs), tuple(outputs), tuple(after))


def test_a_value_is_let_go_after_its_last_use() -> None:
    units = [
        unit(outputs=[0]),
        unit([0], [1]),
        unit([0, 1], [2]),
        unit([2], [3]),
        unit([2], [4]),
    ]
    step = Step(Structure(units, {}, kept=[3]), [None] * 5)
    assert step.begin() == [(0, step.root)]
    alive = []
    ready = [0]
    while ready:
        index = ready.pop(0)
        outputs = [f"value {v}" for v in units[index].outputs]
        ready += [i for i, tag in step.complete(index, step.root, outputs) if tag is step.root]
        alive.append([v for v, value in enumerate(step.root.values) if value is not None])
    # The output of the last unit nobody takes: it is never held.
    assert alive == [[0], [0, 1], [2], [2, 3], [3]]


def test_control_edges_and_late_feeds() -> None:
    units = [
        unit(outputs=[0], kind=LateFeed),
        unit(outputs=[1]),
        unit([0], [2], after=[1]),
        unit(after=[2]),
    ]
    step = Step(Structure(units, {}, kept=[]), [None] * 3)
    assert [i for i, _ in step.begin()] == [1]
    assert step.complete(1, step.root, ("x",)) == []
    assert not step.has_run(0)
    assert [i for i, _ in step.complete(0, step.root, ("fed",))] == [2]
    assert step.root.values[0] == "fed"
    assert [i for i, _ in step.complete(2, step.root, ("y",))] == [3]
    assert step.root.values[0] is None
    assert step.has_run(2)
    assert not step.has_run(3)


class Merging(Unit):
    __slots__ = ()
    fires_on_any = True


def test_a_merge_of_dead_values_is_dead_and_a_dead_control_edge_kills() -> None:
    units = [
        unit(outputs=[0]),
        unit(outputs=[1]),
        unit([0, 1], [2], kind=Merging),
        unit([2], [3]),
        unit(outputs=[4], after=[3]),
    ]
    step = Step(Structure(units, {}, kept=[2, 4]), [None] * 5)
    step.begin()
    assert step.complete(0, step.root, (DEAD,)) == []
    assert step.complete(1, step.root, (DEAD,)) == []
    assert step.root.values[2] is DEAD
    assert step.root.values[4] is DEAD
    assert all(step.has_run(i) for i in range(5))
    step = Step(Structure(units, {}, kept=[2, 4]), [None] * 5)
    step.begin()
    assert [i for i, _ in step.complete(1, step.root, ("alive",))] == [2]
    assert step.complete(0, step.root, (DEAD,)) == []
    assert [i for i, _ in step.complete(2, step.root, ("alive",))] == [3]


@pytest.mark.parametrize("known", [{}, {2: "constant"}])
def test_a_merge_waits_for_its_control_edges_whatever_of_its_inputs_is_there(known: Any) -> None:
    units = [
        unit(outputs=[0]),
        unit(outputs=[1]),
        unit(),
        unit([0, 1, *known], [3], after=[2], kind=Merging),
    ]
    step = Step(Structure(units, known, kept=[3]), [None] * 4)
    step.begin()
    assert step.complete(0, step.root, ("first",)) == []
    assert step.complete(1, step.root, ("second",)) == []
    assert [i for i, _ in step.complete(2, step.root, ())] == [3]


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_what_comes_after_a_merge_that_did_not_need_it_is_not_held(order: list[int]) -> None:
    # Value 1 is fed, so that the merge waits for nothing.
    units = [unit([0], [2]), unit([1, 2], [3], kind=Merging)]
    step = Step(Structure(units, {}, kept=[3]), ["fed", "fed", None, None])
    assert [i for i, _ in step.begin()] == [0, 1]
    for index in order:
        step.complete(index, step.root, (f"given by {index}",))
    assert step.root.values == [None, None, None, "given by 1"]


class Seeing(Unit):
    __slots__ = ()
    sees_dead = True


def test_what_sees_dead_values_runs_on_them_and_is_not_dead_itself() -> None:
    units = [
        unit(outputs=[0]),
        unit([0], [1], kind=Seeing),
        unit([0], [2]),
        unit([2], [3], kind=Seeing),
    ]
    step = Step(Structure(units, {}, kept=[1, 2, 3]), [None] * 4)
    step.begin()
    assert sorted(i for i, _ in step.complete(0, step.root, (DEAD,))) == [1, 3]
    assert step.has_run(2)
    step.complete(1, step.root, ("seen",))
    assert step.root.values[1:3] == ["seen", DEAD]


class Entering(Unit):
    __slots__ = ()
    retag = Retag.PUSH
    enters = "inner"


class Iterating(Unit):
    __slots__ = ()
    retag = Retag.INCREMENT


@pytest.mark.parametrize("parallel", [1, 2, 3])
def test_no_more_iterations_are_under_way_than_may_be(parallel: int) -> None:
    merge, following, slow = 1, 2, 3
    units = [
        unit(outputs=[0], kind=Entering),
        unit([0, 2], [1], kind=Merging),
        unit([1], [2], kind=Iterating),
        unit([1], [3]),
    ]
    frames = [Frame("", 1, range(1)), Frame("inner", parallel, range(1, 4))]
    step = Step(Structure(units, {}, kept=[], frames=frames), [None] * 4)
    step.begin()
    [(index, tag)] = step.complete(0, step.root, ("x",))
    under_way = []
    while True:
        assert index == merge
        under_way.append(tag)
        assert [i for i, _ in step.complete(merge, tag, ("x",))] == [following, slow]
        ready = step.complete(following, tag, ("x",))
        if not ready:
            break
        [(index, tag)] = ready
    assert [tag.number for tag in under_way] == list(range(parallel))
    # Room for one more is there when the oldest has ended.
    [(index, tag)] = step.complete(slow, under_way[0], (None,))
    assert (index, tag.number) == (merge, parallel)
