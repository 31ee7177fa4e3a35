"""When what runs: guards of items, frame by frame."""

from __future__ import annotations

from typing import Any

import pytest

import flowbook as fb
from flowbook.exec.devices.local_devices import local_devices
from flowbook.exec.plan import pipeline
from flowbook.exec.plan.outline import Outline
from flowbook.exec.plan.program import Part, PlanNode
from flowbook.exec.signature.signature import Signature

flow = fb.control_flow


@pytest.fixture
def x() -> fb.Tensor:
    return fb.placeholder(fb.int32, [], name="x")


def part_of(fetches: Any, *feeds: fb.Tensor) -> Part:
    prepared = pipeline.prepare(Signature(tuple(fetches), (), feeds), local_devices())
    (part,) = prepared.program.parts
    return part


def node_of(part: Part, name: str) -> PlanNode:
    return next(node for node in part.nodes if node.name == name)


def guard_of(outline: Outline, part: Part, name: str) -> Any:
    """When the first output of a node is there."""
    return set(outline.guards[node_of(part, name).outputs[0]])


def test_a_side_of_a_branch_and_what_comes_after_it(x: fb.Tensor) -> None:
    found = fb.cond(
        x > 3, lambda: fb.add(x, 2, name="yes"), lambda: fb.subtract(x, 1, name="no"), name="cond"
    )
    part = part_of([fb.multiply(found, 2, name="after")], x)
    outline = Outline(part)
    yes, no = guard_of(outline, part, "cond/yes"), guard_of(outline, part, "cond/no")
    assert [side for _, side in yes] == [1]
    assert [side for _, side in no] == [0]
    assert {pred for pred, _ in yes} == {pred for pred, _ in no}
    assert guard_of(outline, part, "after") == set()


def test_a_branch_within_a_branch(x: fb.Tensor) -> None:
    def inner() -> fb.Tensor:
        found = fb.cond(x > 9, lambda: fb.add(x, 2, name="deep"), lambda: x, name="inner")
        return fb.multiply(found, 2, name="after")

    part = part_of([fb.cond(x > 3, inner, lambda: x, name="cond")], x)
    outline = Outline(part)
    assert len(guard_of(outline, part, "cond/inner/deep")) == 2
    assert len(guard_of(outline, part, "cond/after")) == 1


def test_a_loop_is_one_item_and_what_leaves_it_is_there(x: fb.Tensor) -> None:
    (last,) = fb.while_loop(
        lambda v: v < 10, lambda v: (fb.add(v, 3, name="step"),), (x,), name="loop"
    )
    part = part_of([fb.multiply(last, 2, name="after")], x)
    outline = Outline(part)
    assert [item.block is not None for item in outline.layouts[""].items] == [True, False]
    assert guard_of(outline, part, "after") == set()
    # In an iteration the body runs only if there is another one.
    assert [side for _, side in guard_of(outline, part, "loop/step")] == [1]
    [name] = [name for name in outline.layouts if name]
    inside = outline.layouts[name]
    order = [part.nodes[item.nodes[0]].type for item in inside.items]
    assert order.index("Merge") < order.index("Switch") < order.index("NextIteration")


def by_hand(x: fb.Tensor, lasts: bool) -> list[fb.Tensor]:
    """A loop of two variables, of which the second may end before the first."""
    first, second = flow.merge([flow.enter(x, "loop")]), flow.merge([flow.enter(x, "loop")])
    goes_on = flow.loop_cond(fb.less(first.output, 50, name="less"))
    one, other = flow.switch(first.output, goes_on), flow.switch(second.output, goes_on)
    flow.next_iteration(fb.add(one.output_true, 7, name="step"), first)
    doubled = fb.multiply(other.output_true, 2, name="doubled")
    kept = doubled if lasts else flow.switch(doubled, doubled < 20).output_true
    flow.next_iteration(kept, second)
    return [flow.exit(one.output_false, name="last"), flow.exit(other.output_false)]


def test_a_loop_by_hand_whose_variables_last(x: fb.Tensor) -> None:
    part = part_of(by_hand(x, lasts=True), x)
    outline = Outline(part)
    assert guard_of(outline, part, "last") == set()
    assert guard_of(outline, part, "less") == set()
    assert guard_of(outline, part, "step") == guard_of(outline, part, "doubled")


def test_a_loop_by_hand_one_of_whose_variables_ends(x: fb.Tensor) -> None:
    part = part_of(by_hand(x, lasts=False), x)
    outline = Outline(part)
    assert guard_of(outline, part, "last") != set()
    assert guard_of(outline, part, "step") != guard_of(outline, part, "doubled")


def test_a_loop_by_hand_that_is_left_before_its_end(x: fb.Tensor) -> None:
    merge = flow.merge([flow.enter(x, "loop")])
    sides = flow.switch(merge.output, flow.loop_cond(merge.output < 50))
    flow.next_iteration(sides.output_true + 7, merge)
    part = part_of([flow.exit(sides.output_true, name="first")], x)
    (name,) = node_of(part, "first").outputs
    assert Outline(part).guards[name] == {(name, 2)}


def test_what_enters_a_loop_on_two_sides_of_a_branch(x: fb.Tensor) -> None:
    sides = flow.switch(x, x > 0)
    merge = flow.merge([flow.enter(sides.output_true, "loop")])
    flow.enter(x * 2, "loop", is_constant=True, name="constant")
    inside = flow.switch(merge.output, flow.loop_cond(merge.output < 50))
    flow.next_iteration(inside.output_true + x.graph.get_tensor_by_name("constant:0"), merge)
    part = part_of([flow.exit(inside.output_false, name="last")], x)
    item = Outline(part).layouts[""].items[-1]
    assert item.block is not None
    assert not item.is_even


def test_a_loop_in_a_branch_is_entered_or_not(x: fb.Tensor) -> None:
    def loop() -> fb.Tensor:
        step = fb.while_loop(lambda v: v < 10, lambda v: (fb.add(v, 3, name="step"),), (x,))
        return fb.multiply(*step, 2, name="after")

    part = part_of([fb.cond(x > 3, loop, lambda: x, name="cond")], x)
    outline = Outline(part)
    assert {side for _, side in guard_of(outline, part, "cond/while/step")} == {1, 3}
    assert {side for _, side in guard_of(outline, part, "cond/after")} == {1}
