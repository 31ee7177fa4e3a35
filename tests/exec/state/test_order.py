"""In every executor a step's reads see the values from before its writes, which come as built.

What a control dependency or an input orders comes in that order.
"""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.plan import pipeline
from flowbook.graph.ops.state.variables import read_variable
from tests.exec.random_graphs import delayed
from tests.exec.state.executors import EXECUTORS, everywhere, run_in
from tests.graph.ops.queues.waiting import waiters


def read(variable: fb.Variable) -> fb.Tensor:
    """A read of its own, built here and now."""
    return read_variable(variable.handle, dtype=variable.dtype, shape=variable.shape)


def check(fetches: Any, expected: Any, after: dict[fb.Variable, Any] | None = None) -> None:
    """See that each executor returns `expected`, and leaves variables as in `after`."""
    for kind, sess, values in everywhere(fb.get_default_graph(), fetches):
        np.testing.assert_equal(values, expected, err_msg=kind)
        for variable, value in (after or {}).items():
            np.testing.assert_equal(sess.run(variable), value, err_msg=f"{kind}: {variable}")


def test_read_that_nothing_orders_sees_the_value_before_the_write() -> None:
    W = fb.Variable(1, name="W")
    check([fb.assign(W, 5), W], [5, 1], {W: 5})


def test_read_built_after_the_write_sees_the_value_before_it_too() -> None:
    W = fb.Variable(1)
    written = fb.assign(W, 5)
    check([written, read(W)], [5, 1], {W: 5})


def test_train_and_fetch_gives_the_value_before_the_update() -> None:
    W = fb.Variable([1.0, 2.0])
    train = fb.train.GradientDescentOptimizer(0.5).minimize(fb.reduce_sum(W * W))
    check([train, W], [None, [1.0, 2.0]], {W: [0.0, 0.0]})


def test_gather_built_after_the_write_sees_the_rows_before_it() -> None:
    W = fb.Variable([1, 2, 3])
    written = fb.scatter_update(W, [0], [9])
    check([written, fb.gather(W, [0, 2])], [[9, 2, 3], [1, 3]], {W: [9, 2, 3]})


def test_gather_by_what_was_written_sees_the_value_after() -> None:
    W = fb.Variable([1, 2, 0])
    written = fb.assign(W, [2, 0, 1])
    check(fb.gather(W, written), [1, 2, 0])


def test_unordered_writes_go_in_the_order_of_construction() -> None:
    W = fb.Variable(1)
    writes = [fb.assign_add(W, 3), fb.assign(W, 10), fb.assign_sub(W, 4), fb.assign_add(W, 1)]
    check(writes[::-1], [7, 6, 10, 4], {W: 7})


def test_control_dependencies_order_a_read_after_a_write() -> None:
    W = fb.Variable(1)
    first = fb.assign_add(W, 1)
    with fb.control_dependencies([first]):
        between = fb.identity(W)
    second = fb.assign_add(W, 10)
    check([second, between, W], [12, 2, 1], {W: 12})


def test_order_reaches_through_pure_operations() -> None:
    W = fb.Variable(1)
    first = fb.assign_add(W, 1)
    with fb.control_dependencies([fb.negative(first)]):
        late = fb.constant(0) + 0
    with fb.control_dependencies([late]):
        seen = fb.identity(W)
    check([seen, W], [2, 1])


def test_read_after_all_writes_is_kept_apart_from_the_one_before() -> None:
    W = fb.Variable(1)
    with fb.control_dependencies([fb.assign(W, 2)]):
        after = W * 10
    check([after, W * 10], [20, 10])


def test_variables_do_not_disturb_one_another() -> None:
    A, B = fb.Variable(1), fb.Variable(2)
    to_b, to_a = fb.assign(B, A), fb.assign(A, B)
    check([to_b, to_a], [1, 2], {A: 2, B: 1})


def test_edge_that_would_close_a_cycle_yields_to_the_order_of_construction() -> None:
    A, B = fb.Variable(1), fb.Variable(2)
    write_a = fb.assign(A, 10)
    write_b = fb.assign(B, 20)
    with fb.control_dependencies([write_a]):
        read_b = read(B)
    with fb.control_dependencies([write_b]):
        read_a = read(A)
    # Both reads before the writes that they are not ordered after would be a cycle.
    check([read_a, read_b], [10, 2], {A: 10, B: 20})


def test_read_that_had_to_yield_still_precedes_the_next_write() -> None:
    A, B = fb.Variable(1), fb.Variable(2)
    write_a = fb.assign(A, 10)
    write_b = fb.assign(B, 20)
    again = fb.assign(A, 100)
    with fb.control_dependencies([write_a]):
        read_b = read(B)
    with fb.control_dependencies([write_b]):
        read_a = read(A)
    last = fb.assign(A, 1000)
    check([read_a, read_b, again, last], [10, 2, 100, 1000], {A: 1000, B: 20})


def test_input_output_operations_run_in_the_order_of_construction() -> None:
    calls: list[int] = []
    made = [fb.py_func(lambda i=i: calls.append(i) or i, [], fb.int32) for i in range(5)]
    for _ in everywhere(fb.get_default_graph(), made[::-1]):
        assert calls == [0, 1, 2, 3, 4]
        calls.clear()


def test_fed_variable_is_read_as_fed_and_updated_as_it_is() -> None:
    W = fb.Variable([1.0, 2.0])
    fetches = [W, fb.gather(W, [1]), fb.assign_add(W, W), fb.is_variable_initialized(W)]
    for kind in EXECUTORS:
        with fb.Session() as sess:
            found = run_in(kind, sess, fetches, {W: np.array([5.0, 7.0], np.float32)})
            np.testing.assert_equal(found, [[5.0, 7.0], [7.0], [6.0, 9.0], True], err_msg=kind)
            np.testing.assert_equal(sess.run(W), [6.0, 9.0])


# Random programs against the rules, spelt out


@dataclass
class Node:
    """One operation of a random program."""

    kind: str
    variable: int = 0
    inputs: list[int] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)
    controls: list[int] = field(default_factory=list)

    @property
    def reads(self) -> bool:
        return self.kind in ("read", "gather")

    @property
    def writes(self) -> bool:
        return self.kind.startswith(("assign", "scatter"))


KINDS = [
    *("read", "read", "gather", "assign", "assign_add", "assign_sub"),
    *("scatter_add", "scatter_sub", "scatter_update", "sum", "negative"),
    *("scatter_max", "scatter_nd_add", "assign_slice"),
]


@st.composite
def programs(draw: Any) -> tuple[int, list[Node], list[int]]:
    """The number of variables, the operations, and which are fetched."""
    variables = draw(st.integers(1, 3))
    nodes: list[Node] = []
    for place in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(KINDS if place else ["read", "gather"]))
        node = Node(kind, draw(st.integers(0, variables - 1)))
        earlier = st.integers(0, place - 1)
        if not node.reads:
            count = 2 if kind == "sum" else 1
            node.inputs = draw(st.lists(earlier, min_size=count, max_size=count))
        if kind == "gather" or kind.startswith("scatter"):
            node.indices = draw(st.lists(st.integers(0, 2), min_size=3, max_size=3))
        if place:
            node.controls = draw(st.lists(earlier, max_size=2, unique=True))
        nodes.append(node)
    fetched = st.lists(st.integers(0, len(nodes) - 1), min_size=1, unique=True)
    return variables, nodes, draw(fetched)


START = [np.array([1, 2, 3]), np.array([10, 20, 30]), np.array([100, 200, 300])]


def expected(variables: int, nodes: list[Node], fetched: list[int]) -> tuple[dict[int, Any], list]:
    """What the rules give: the values of all operations that run, and the variables after."""
    needed: set[int] = set()
    stack = list(fetched)
    while stack:
        place = stack.pop()
        if place not in needed:
            needed.add(place)
            stack += [*nodes[place].inputs, *nodes[place].controls]
    before = {p: {*nodes[p].inputs, *nodes[p].controls} for p in sorted(needed)}
    for variable in range(variables):
        writes = [p for p in before if nodes[p].writes and nodes[p].variable == variable]
        for earlier, later in itertools.pairwise(writes):
            before[later].add(earlier)
    pairs = [
        (r, w)
        for r in before
        for w in before
        if nodes[r].reads and nodes[w].writes and nodes[r].variable == nodes[w].variable
        if not leads_to(before, w, r)
    ]
    for r, w in sorted(pairs, key=lambda pair: (pair[0] > pair[1], *pair)):
        if not leads_to(before, w, r):
            before[w].add(r)
    state = [START[v].copy() for v in range(variables)]
    values: dict[int, Any] = {}
    while len(values) < len(before):
        place = next(p for p in before if p not in values and before[p] <= values.keys())
        values[place] = execute(nodes[place], values, state)
    return values, state


def leads_to(before: dict[int, set[int]], start: int, goal: int) -> bool:
    stack, seen = [goal], {goal}
    while stack:
        place = stack.pop()
        if place == start:
            return True
        new = before[place] - seen
        seen |= new
        stack += new
    return False


def execute(node: Node, values: dict[int, Any], state: list[Any]) -> Any:
    inputs = [values[i] for i in node.inputs]
    old = state[node.variable]
    match node.kind:
        case "read":
            return old
        case "gather":
            return old[node.indices]
        case "sum":
            return inputs[0] + inputs[1]
        case "negative":
            return -inputs[0]
        case "assign":
            new = inputs[0]
        case "assign_add":
            new = old + inputs[0]
        case "assign_sub":
            new = old - inputs[0]
        case "assign_slice":
            new = old.copy()
            new[:2] = inputs[0][1:]
        case _:
            new = old.copy()
            for index, value in zip(node.indices, inputs[0], strict=True):
                match node.kind:
                    case "scatter_add" | "scatter_nd_add":
                        new[index] += value
                    case "scatter_sub":
                        new[index] -= value
                    case "scatter_update":
                        new[index] = value
                    case "scatter_max":
                        new[index] = max(new[index], value)
    state[node.variable] = new
    return new


BUILDERS: dict[str, Callable[..., fb.Tensor]] = {
    "read": read,
    "gather": lambda v, indices: fb.gather(v, indices),
    "sum": lambda x, y: x + y,
    "negative": fb.negative,
    "assign": fb.assign,
    "assign_add": fb.assign_add,
    "assign_sub": fb.assign_sub,
    "scatter_add": lambda v, i, x: fb.scatter_add(v, i, x),
    "scatter_sub": lambda v, i, x: fb.scatter_sub(v, i, x),
    "scatter_update": lambda v, i, x: fb.scatter_update(v, i, x),
    "scatter_max": lambda v, i, x: fb.scatter_max(v, i, x),
    "scatter_nd_add": lambda v, i, x: fb.scatter_nd_add(v, np.array(i)[:, None], x),
    "assign_slice": lambda v, x: fb.assign_slice(v, np.s_[:2], x[1:]),
}


@given(programs())
def test_random_programs_follow_the_rules_in_every_executor(
    program: tuple[int, list[Node], list[int]],
) -> None:
    count, nodes, fetched = program
    values, state = expected(count, nodes, fetched)
    with fb.Graph().as_default() as graph:
        variables = [fb.Variable(START[v].astype(np.int32)) for v in range(count)]
        built: list[fb.Tensor] = []
        for node in nodes:
            uses = [variables[node.variable]] if node.reads or node.writes else []
            uses += [node.indices] if node.indices else []
            uses += [built[i] for i in node.inputs]
            with fb.control_dependencies([built[c] for c in node.controls]):
                built.append(BUILDERS[node.kind](*uses))
    fetches = [built[place] for place in fetched]
    for kind, sess, found in everywhere(graph, fetches):
        np.testing.assert_equal(found, [values[p] for p in fetched], err_msg=kind)
        np.testing.assert_equal(sess.run(variables), state, err_msg=f"{kind}: variables")
        # The same step again, from where the first one ended, in whatever the session chooses.
        again = sess.run(variables)
        assert all(np.array_equal(a, b) for a, b in zip(again, state, strict=True))


@pytest.mark.soak
@given(programs())
def test_many_random_programs(program: tuple[int, list[Node], list[int]]) -> None:
    test_random_programs_follow_the_rules_in_every_executor.hypothesis.inner_test(program)


def test_a_write_waits_for_loops_that_read_and_wait_at_queues_of_their_own() -> None:
    """Nothing that it takes tells it to: it is in no group with either of them."""
    queues = [fb.FIFOQueue(1, fb.int32, shapes=[[]]) for _ in range(2)]
    v = fb.Variable([1, 2, 3])
    totals = []
    for queue in queues:
        n = queue.dequeue()
        _, total = fb.while_loop(
            lambda i, _, n=n: i < n, lambda i, t: (i + 1, t + fb.gather(v, i)), (0, 0)
        )
        totals.append(total)
    write = fb.assign(v, [10, 20, 30]).op
    puts = [queue.enqueue(3) for queue in queues]
    with fb.Session() as sess, ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            sess.run(v.initializer)
            found = pool.submit(sess.run, [totals, write], timeout=60)
            for queue, put in zip(queues, puts, strict=True):
                while not waiters(sess, queue) and not found.done():
                    pass
                sess.run(put)
            assert found.result()[0] == [6, 6]
            assert sess.run(v).tolist() == [10, 20, 30]


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("is_in_branch", [False, True])
def test_a_read_behind_what_a_queue_hands_on_sees_what_was_written_before_it(
    cpus: int, is_in_branch: bool
) -> None:
    v, queue = fb.Variable(1.0), fb.FIFOQueue(1, fb.float32, shapes=[[]])
    with fb.device(f"/cpu:{cpus - 1}"):
        taken = queue.dequeue()
    if is_in_branch:
        seen = fb.cond(taken > 0.0, lambda: read(v) + taken, lambda: taken)
    else:
        with fb.control_dependencies([taken]):
            seen = read(v) + taken
    put = queue.enqueue(fb.assign_add(v, 1.0))
    with fb.Session(cpus=cpus) as sess:
        for number in range(2, 6):
            assert sess.run([seen, put], timeout=60) == [2.0 * number, None]


def handed_on_writes(chosen: str = "") -> tuple[fb.Variable, list[Any]]:
    """A write of what the same step puts into a queue behind a later one, which goes first.

    Args:
        chosen: what is done at a queue that is one of several: "takes", "puts" or both.
    """
    v = fb.Variable(1.0)
    queue, other = (fb.FIFOQueue(2, fb.float32, shapes=[[]]) for _ in range(2))
    one = fb.Queue.from_list(0, [queue, other]) if chosen else queue
    first = fb.assign(v, (one if "takes" in chosen else queue).dequeue() + 5.0)
    second = fb.assign_add(v, 1.0)
    return v, [first, second, (one if "puts" in chosen else queue).enqueue(second)]


@pytest.mark.parametrize("chosen", ["", "takes", "puts", "takes and puts"])
def test_a_variable_whose_later_write_goes_first_is_initialised(chosen: str) -> None:
    _, writes = handed_on_writes(chosen)
    with fb.Session() as sess:
        assert sess.run(writes, timeout=60) == [7.0, 2.0, None]


def test_a_write_that_is_new_goes_after_the_last_of_those_that_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "LEAST_TO_GROW", 1)
    v, writes = handed_on_writes()
    with fb.Session() as sess:
        sess.run(writes, timeout=60)
        new = fb.assign_add(v, 100.0)
        assert sess.run([*writes, new], timeout=60) == [13.0, 8.0, None, 113.0]
        assert sess.run(v) == 113.0


def test_what_wakes_it_only_afterwards_does_not_hide_what_a_queue_hands_on() -> None:
    v, queue = fb.Variable(1.0), fb.FIFOQueue(2, fb.float32, shapes=[[]])
    taken = queue.dequeue()
    with fb.control_dependencies([taken]):
        seen = read(v) + 0.0
        closing = queue.close()
    put = queue.enqueue(fb.assign_add(v, 1.0))
    with fb.Session() as sess:
        assert sess.run([seen, closing, put], timeout=60) == [2.0, None, None]


@pytest.mark.parametrize("trips", [0, 2])
def test_a_read_behind_a_loop_that_waits_for_a_write_sees_it(trips: int) -> None:
    W = fb.Variable(1.0)
    written = fb.assign(W, delayed(5.0)[0])

    def body(i: Any) -> Any:
        with fb.control_dependencies([written]):
            return i + 1

    last = fb.while_loop(lambda i: i < trips, body, [0])[0]
    with fb.control_dependencies([last]):
        check([written, read(W)], [6.0, 6.0], {W: 6.0})


@pytest.mark.parametrize("taken", [True, False])
def test_a_read_behind_a_branch_that_waits_for_a_write_sees_it_taken_or_not(taken: bool) -> None:
    W = fb.Variable(1.0)
    written = fb.assign(W, delayed(5.0)[0])

    def waiting() -> Any:
        with fb.control_dependencies([written]):
            return fb.constant(1)

    chosen = fb.cond(fb.identity(taken), waiting, lambda: fb.constant(2))
    with fb.control_dependencies([chosen]):
        check([written, read(W)], [6.0, 6.0], {W: 6.0})
