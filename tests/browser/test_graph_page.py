"""What the live view does by itself, without a kernel: in exported pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import flowbook as fb
from tests.browser.view import (
    exported,
    over_edge,
    press,
    redrawn,
    reveal,
    saved_svg,
    select_output,
    tree_items,
)
from tests.need import requires

pytestmark = [
    pytest.mark.browser,
    requires(program="chromium", module="playwright"),
]


def layers(count: int = 5) -> fb.Graph:
    """Scopes that are alike and numbered, between two operations."""
    graph = fb.Graph()
    with graph.as_default():
        h = fb.placeholder(fb.float32, [None, 8], name="x")
        for i in range(count):
            with fb.name_scope(f"layer_{i}"):
                h = fb.tanh(fb.add(h, 1.0, name="shifted"), name="h")
        fb.identity(h, name="y")
    return graph


def toggle(view: Any, name: str) -> None:
    before = view.get_attribute("data-drawn")
    view.get_by_role("button", name=name).click()
    redrawn(view, before)


def places(svg: str) -> dict[str, tuple[float, float]]:
    """Where the name of each closed box is in a saved picture."""
    root = ElementTree.fromstring(svg)
    texts = root.iterfind(".//{http://www.w3.org/2000/svg}text[@text-anchor='middle']")
    return {each.text or "": (float(each.get("x", 0)), float(each.get("y", 0))) for each in texts}


def test_series_become_scopes_on_request_and_go_again(tmp_path: Path, page: Any) -> None:
    view = exported(page, layers(), tmp_path)
    plain = tree_items(view)
    assert plain[1:6] == [f"layer_{i}, 3 operations" for i in range(5)]
    button = "Group members that are alike and numbered"
    toggle(view, button)
    assert "layer_0 … layer_4, series, 15 operations" in tree_items(view)
    assert len(tree_items(view)) == 3
    before = view.get_attribute("data-drawn")
    press(view, "Home", "ArrowDown", "ArrowRight")
    redrawn(view, before)
    assert len(tree_items(view)) == 8
    assert {f"layer_{i}" for i in range(5)} < places(saved_svg(view)).keys()
    toggle(view, button)
    assert tree_items(view) == plain


def test_edges_run_down_or_to_the_right(tmp_path: Path, page: Any) -> None:
    view = exported(page, layers(3), tmp_path)
    names = ["x", *(f"layer_{i}" for i in range(3)), "y"]
    # A chain that fits the width lies on its side at first.
    right = places(saved_svg(view))
    assert sorted(names, key=lambda name: right[name][0]) == names
    assert max(right[name][1] for name in names) - min(right[name][1] for name in names) < 20
    toggle(view, "Let edges run to the right")
    down = places(saved_svg(view))
    assert sorted(names, key=lambda name: down[name][1]) == names


def test_a_scope_is_set_aside_and_brought_back(tmp_path: Path, page: Any) -> None:
    view = exported(page, layers(), tmp_path)
    before = places(saved_svg(view))
    reveal(view, "layer_2")
    toggle(view, "Set aside")
    moved = places(saved_svg(view))
    assert moved["layer_2"][1] > max(y for name, (_, y) in moved.items() if name != "layer_2")
    toggle(view, "Bring back")
    assert places(saved_svg(view)) == before


def test_a_layout_that_nobody_waits_for_is_given_up(tmp_path: Path, page: Any) -> None:
    graph = fb.Graph()
    with graph.as_default(), fb.name_scope("dense"):
        made = [fb.placeholder(fb.float32, [], name="x")]
        for i in range(120):
            made.append(fb.add(made[i // 2], made[i * 7 % len(made)], name=f"n{i}"))
    with graph.as_default():
        fb.identity(made[-1], name="y")
    view = exported(page, graph, tmp_path)
    before = view.get_attribute("data-drawn")
    # The page itself is busy in between, so the worker has begun and cannot be heard.
    page.evaluate(
        """() => {
            const tree = document.querySelector("[role=tree]");
            const press = (key) => tree.dispatchEvent(new KeyboardEvent("keydown", { key }));
            press("Home");
            press("ArrowRight");
            const until = performance.now() + 100;
            while (performance.now() < until);
            press("ArrowLeft");
        }"""
    )
    redrawn(view, before)
    assert len(tree_items(view)) == 2
    # The next one is asked of a worker that is there.
    before = view.get_attribute("data-drawn")
    press(view, "Home", "ArrowRight")
    redrawn(view, before)
    assert len(tree_items(view)) == 123


def test_the_tree_says_where_one_is(tmp_path: Path, page: Any) -> None:
    view = exported(page, layers(2), tmp_path)
    tree = view.locator("[role=tree]")

    def active() -> Any:
        return view.locator(f"[id='{tree.get_attribute('aria-activedescendant')}']")

    press(view, "Home")
    assert active().inner_text() == "x, Placeholder"
    assert active().get_attribute("aria-selected") == "true"
    press(view, "End")
    assert active().inner_text() == "y, Identity"
    before = view.get_attribute("data-drawn")
    press(view, "ArrowUp", "ArrowRight")
    redrawn(view, before)
    press(view, "ArrowRight")
    row = active()
    assert row.inner_text().startswith("shifted, ")
    assert (row.get_attribute("aria-level"), row.get_attribute("aria-posinset")) == ("2", "1")
    press(view, "ArrowLeft")
    assert active().inner_text() == "layer_1, 3 operations"
    press(view, "Home", "/")
    assert view.get_by_role("combobox").evaluate("(e) => e === document.activeElement")


def test_tensors_are_reached_by_keyboard(tmp_path: Path, page: Any) -> None:
    view = exported(page, layers(1), tmp_path)
    press(view, "Home", "ArrowRight", "ArrowRight")
    assert tree_items(view)[1] == "output 0, float32 [?, 8]"
    card = view.locator(".fb-card")
    assert card.locator("h3").inner_text() == "x:0"
    assert 'sess.run("x:0", {' in card.inner_text()
    assert card.get_by_role("button", name="Fetch").count() == 0  # There is no kernel.
    press(view, "ArrowLeft")
    assert card.locator("h3").inner_text() == "x"
    press(view, "ArrowLeft")
    assert tree_items(view)[1].startswith("layer_0")


def test_the_keyboard_goes_on_where_it_was(tmp_path: Path, page: Any) -> None:
    view = exported(page, layers(), tmp_path)
    focused = view.locator(":focus")
    press(view, "Home", "ArrowDown")
    page.keyboard.press("Tab")
    assert focused.inner_text() == "Expand"
    before = view.get_attribute("data-drawn")
    page.keyboard.press("Enter")
    redrawn(view, before)
    assert focused.inner_text() == "Collapse"
    view.locator(".fb-card").get_by_role("button", name="x:0").focus()
    page.keyboard.press("Enter")
    view.locator(".fb-card h3", has_text="x:0").wait_for()
    assert focused.get_attribute("aria-label") == "selection"
    page.keyboard.press("Tab")
    assert focused.inner_text() == "Copy"
    page.keyboard.press("Escape")
    view.locator(".fb-card").wait_for(state="hidden")
    assert focused.get_attribute("role") == "tree"


def test_a_click_on_an_edge_selects_its_tensor(tmp_path: Path, page: Any) -> None:
    view = exported(page, layers(2), tmp_path)
    page.mouse.click(*over_edge(view, "x:0"))
    card = view.locator(".fb-card")
    assert card.locator("h3").inner_text() == "x:0"
    assert card.get_by_role("button", name="layer_0/shifted", exact=True).is_visible()
    told = card.locator("pre").all_inner_texts()
    assert told[0] == 'sess.run("x:0", {\n    "x:0": ...,  # float32 [?, 8]\n})'
    assert told[1] == 'sess.run("layer_0/shifted:0", {\n    "x:0": ...,  # float32 [?, 8]\n})'


def test_an_edge_of_several_tensors_gives_the_choice(tmp_path: Path, page: Any) -> None:
    graph = fb.Graph()
    with graph.as_default():
        with fb.name_scope("a"):
            one, two = fb.zeros([2], name="one"), fb.zeros([3], name="two")
        with fb.name_scope("b"):
            fb.identity(one)
            fb.identity(two)
    view = exported(page, graph, tmp_path)
    page.mouse.click(*over_edge(view, "a → b"))
    card = view.locator(".fb-card")
    assert card.locator("h3").inner_text() == "2 tensors"
    before = view.get_attribute("data-drawn")
    card.get_by_role("button", name="a/two").click()
    redrawn(view, before)  # What it comes from is opened.
    assert card.locator("h3").inner_text().startswith("a/two")
    assert card.locator("h3").inner_text().endswith(":0")


def test_code_is_copied(tmp_path: Path, page: Any) -> None:
    view = exported(page, layers(1), tmp_path)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    select_output(view, "y")
    view.get_by_role("button", name="Copy").first.click()
    view.get_by_text("Copied").wait_for()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied == view.locator(".fb-snippet").first.inner_text()


def test_the_saved_picture_is_complete_and_well_formed(tmp_path: Path, page: Any) -> None:
    view = exported(page, layers(2), tmp_path)
    before = view.get_attribute("data-drawn")
    press(view, "Home", "ArrowDown", "ArrowRight")
    redrawn(view, before)
    svg = saved_svg(view)
    root = ElementTree.fromstring(svg)
    titles = {e.text for e in root.iter("{http://www.w3.org/2000/svg}title")}
    assert {"x", "layer_0", "layer_0/h", "layer_0/shifted", "layer_1", "y"} <= titles
    texts = {e.text for e in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"layer_0", "h", "shifted", "layer_1", "3 operations"} <= texts
    assert "float32 [?, 8]" in texts
    paths = root.findall(".//{http://www.w3.org/2000/svg}path[@fill='none']")
    assert len(paths) >= 4
    assert not re.search(r"<script|href|@import|url\(", svg)


def test_hostile_names_and_values_are_text(tmp_path: Path, page: Any) -> None:
    graph = fb.Graph()
    with graph.as_default():
        a = fb.constant([float("nan"), float("inf")], name="a")
        fb.constant(b"<b>" * 400_000, name="b")
        image = fb.identity(a, name="c").op
        image.name = "<img src=x onerror='window.broken = 1'>"
        fb.identity(
            a, name="d"
        ).op.name = "</title><script>window.broken = 1</script>\x00\x1b\u202e"
        fb.identity(image.outputs[0], name="e").op.name = "long " * 50_000
    view = exported(page, graph, tmp_path)
    for _ in tree_items(view):
        press(view, "ArrowDown", "Enter")
        told = view.locator(".fb-card").inner_text()
        assert len(told) < 20_000
        assert not re.search(r"[\x00\x1b\u202e]", told)
    view.get_by_role("combobox").fill("img")
    assert view.locator("[role=option]").first.inner_text().startswith("<img src=x onerror")
    view.get_by_role("combobox").press("Enter")
    view.locator(".fb-card").get_by_role("button", name=re.compile("^<img")).first.click()
    assert "onerror" in view.locator(".fb-snippet").first.inner_text()
    ElementTree.fromstring(saved_svg(view))
    assert page.evaluate("() => window.broken") is None
    assert view.locator("img, script").count() == 0


def test_control_edges_are_shown_on_request(tmp_path: Path, page: Any) -> None:
    graph = fb.Graph()
    with graph.as_default():
        first = fb.zeros([2], name="first")
        with fb.control_dependencies([first]):
            fb.ones([2], name="second")
    view = exported(page, graph, tmp_path)
    dashes = 'stroke-dasharray="3 4"'
    assert dashes not in saved_svg(view)
    toggle(view, "Show control edges")
    assert dashes in saved_svg(view)


DRAWN = """
    window.drawn = [];
    const fillText = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
        const size = parseFloat(/([\\d.]+)px/.exec(this.font)[1]) * this.getTransform().a;
        window.drawn.push([text, size / devicePixelRatio]);
        fillText.call(this, text, ...at);
    };
"""


def test_names_can_be_read_however_small_the_picture_is(tmp_path: Path, own_page: Any) -> None:
    own_page.emulate_media(reduced_motion="reduce")
    own_page.add_init_script(DRAWN)
    view = exported(own_page, layers(5), tmp_path)
    for _ in range(3):
        own_page.evaluate("() => window.drawn = []")
        view.get_by_role("button", name="Zoom out").click()
        own_page.wait_for_function("() => window.drawn.length > 0")
        shown = own_page.evaluate("() => window.drawn")
        assert {"x", "layer_0", "layer_4"} <= {text for text, _ in shown}
        assert all(size >= 6.4 for _, size in shown)
