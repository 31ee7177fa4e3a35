"""Loops and branches in the live view, in a real JupyterLab."""

import re
from pathlib import Path
from typing import Any

import pytest

import flowbook as fb
from tests.browser.lab import Lab
from tests.browser.view import exported, press, redrawn, reveal, saved_svg, tree_items
from tests.need import requires

pytestmark = [
    pytest.mark.browser,
    requires(program="chromium", module="playwright"),
]

LOOP = """import flowbook as fb
n = fb.placeholder(fb.int32, [], name="n")
x = fb.placeholder(fb.float32, [], name="x")
def body(i, state):
    h = fb.cond(state["h"] > 5.0, lambda: state["h"] - x, lambda: state["h"] + x, name="limit")
    return i + 1, {"h": h}
_, last = fb.while_loop(lambda i, state: i < n, body, (0, {"h": x}), name="steps")
y = fb.identity(last["h"], name="y")
sess = fb.Session()
"""


def opened(view: Any, name: str) -> list[str]:
    """What the tree lists after a scope was opened from its card."""
    reveal(view, name)
    before = view.get_attribute("data-drawn")
    view.locator(".fb-card").get_by_role("button", name="Expand").click()
    redrawn(view, before)
    return tree_items(view)


def test_a_loop_opens_to_its_parts_and_says_how_it_ran(lab: Lab, page: Any) -> None:
    run = "sess.run(y, {n: 7, x: 1.0})"
    lab.write("loops", LOOP + "fb.GraphView(sess)", run, run.replace("7", "4"))
    notebook = lab.open(page, "loops")
    notebook.run(0)
    view = notebook.graph(0)
    assert tree_items(view)[2].startswith("steps, loop, ")
    for cell, times in ((1, 7), (2, 4)):
        before = view.get_attribute("data-drawn")
        notebook.run(cell)
        redrawn(view, before)
        assert tree_items(view)[2].startswith(f"steps, loop, ran {times} times, ")
    listed = opened(view, "steps")
    names = [item.partition(",")[0] for item in listed]
    assert {"i", "state.h", "condition", "body", "limit", "Less"} <= set(names)
    assert not {"Enter", "Merge", "Switch", "Exit", "NextIteration", "LoopCond"} & set(names)
    picture = saved_svg(view)
    assert "↻ steps" in picture
    rounds = re.findall(r'stroke="#([0-9a-f]{6})" stroke-width="1.2"', picture)
    assert sorted(rounds.count(colour) for colour in set(rounds))[0] == 2  # Two go round.
    listed = opened(view, "steps/limit")
    names = [item.partition(",")[0] for item in listed]
    assert {"predicate", "true", "false", "Sub", "Add", "result"} <= set(names)
    assert any(item.startswith("limit, branch, false ran last") for item in listed)
    # What lies inside is found, and says where it runs.
    reveal(view, "steps/limit/Sub")
    told = view.locator(".fb-card").inner_text()
    assert "true of steps/limit" in told
    assert "body of steps" in told
    assert "cell [1], line 5" in told


def test_what_only_routes_is_shown_when_it_is_asked_for(tmp_path: Path, page: Any) -> None:
    scope: dict[str, Any] = {}
    with fb.Graph().as_default() as graph:
        exec(LOOP, scope)
        view = exported(page, graph, tmp_path)
    button = view.get_by_role("button", name="Show what only routes values")
    assert button.get_attribute("aria-pressed") == "false"
    before = view.get_attribute("data-drawn")
    field = view.get_by_role("combobox")
    field.fill("steps/NextIteration_1")
    view.locator("[role=option]").first.wait_for()
    field.press("Enter")
    redrawn(view, before)
    view.locator(".fb-card h3", has_text="steps/NextIteration_1").wait_for()
    assert button.get_attribute("aria-pressed") == "true"
    assert any(item.startswith("steps/NextIteration_1, NextIteration") for item in tree_items(view))
    before = view.get_attribute("data-drawn")
    button.click()
    redrawn(view, before)
    assert not any("NextIteration" in item for item in tree_items(view))


def test_a_loop_opens_by_keyboard(tmp_path: Path, page: Any) -> None:
    scope: dict[str, Any] = {}
    with fb.Graph().as_default() as graph:
        exec(LOOP, scope)
        view = exported(page, graph, tmp_path)
    press(view, "ArrowDown", "ArrowDown", "ArrowDown")
    assert view.locator(".fb-card h3").inner_text() == "steps"
    before = view.get_attribute("data-drawn")
    press(view, "ArrowRight")
    redrawn(view, before)
    opened = view.locator("[role=treeitem][aria-expanded=true]").all_inner_texts()
    assert [item.partition(",")[0] for item in opened] == ["steps", "condition", "body"]
    before = view.get_attribute("data-drawn")
    press(view, "Home", "ArrowDown", "ArrowDown", "ArrowLeft")
    redrawn(view, before)
    assert len(tree_items(view)) == 4


def test_graphs_without_loops_offer_no_routing(tmp_path: Path, page: Any) -> None:
    with fb.Graph().as_default() as graph:
        fb.identity(fb.placeholder(fb.float32, [], name="x"))
        view = exported(page, graph, tmp_path)
    assert view.get_by_role("button", name="Show control edges").is_visible()
    assert view.get_by_role("button", name="Show what only routes values").count() == 0


def test_a_call_opens_the_one_body_of_its_function(tmp_path: Path, page: Any) -> None:
    with fb.Graph().as_default() as graph:
        step = fb.function(lambda a: fb.tanh(a) * 2.0, inline=False, name="step")
        step(step(fb.placeholder(fb.float32, [], name="x")))
        view = exported(page, graph, tmp_path)
    closed = tree_items(view)
    assert [item.partition(",")[2] for item in closed if item.startswith("step")] == [
        " call of functions/step"
    ] * 2
    assert not any(item.startswith("Tanh") for item in closed)
    view.locator("[role=tree]").focus()
    places = [item.partition(",")[0] for item in closed]
    before = view.get_attribute("data-drawn")
    press(view, "Home", *["ArrowDown"] * places.index("step_1"), "Enter")
    redrawn(view, before)
    view.locator("[role=treeitem]", has_text="Tanh").wait_for()
    assert view.locator(".fb-card h3").inner_text() == "functions/step"
    # And from there to another call, whose card has a button for it.
    view.locator(".fb-card").get_by_role("button", name="step", exact=True).click()
    view.locator(".fb-card").get_by_role("button", name="Open the body").click()
    view.locator(".fb-card h3", has_text="functions/step").wait_for()
    assert [item for item in tree_items(view) if item.startswith("Tanh")] == ["Tanh, Tanh"]
