"""The static picture of a graph and the live one are one, however wide the page is."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flowbook as fb
from tests.browser.view import saved_svg
from tests.need import requires
from tests.widgets.graphs.drawn_graph import boxes, routes

pytestmark = [
    pytest.mark.browser,
    requires(program="chromium", module="playwright"),
]


def classifier() -> fb.GraphView:
    x = fb.placeholder(fb.float32, [None, 8], name="x")
    labels = fb.placeholder(fb.int32, [None], name="labels")
    h = fb.layers.dense(x, 16, activation=fb.nn.relu, name="hidden")
    logits = fb.layers.dense(h, 3, name="logits")
    losses = fb.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = fb.reduce_mean(losses, name="loss")
    fb.train.AdamOptimizer(1e-3).minimize(loss)
    return fb.GraphView(fetches=loss, feeds=[x, labels])


def alone() -> fb.GraphView:
    """A loop and a branch, in a scope that is opened since it is alone."""
    with fb.name_scope("model"):
        x = fb.placeholder(fb.float32, [], name="x")
        (h,) = fb.while_loop(lambda h: h < 9.0, lambda h: h * 2.0, (x,), name="steps")
        fb.cond(h > 12.0, lambda: h, lambda: fb.exp(h), name="choice")
    return fb.GraphView()


def towers() -> fb.GraphView:
    """So wide that it lies on its side."""
    x = fb.placeholder(fb.float32, [4], name="x")
    made = []
    for i in range(12):
        with fb.name_scope(f"a_tower_of_a_rather_long_name_{i}"):
            made.append(fb.tanh(x) + x)
    fb.add_n(made, name="sum")
    return fb.GraphView()


def planned() -> fb.GraphView:
    x = fb.placeholder(fb.float32, [1000], name="x")
    with fb.device("cpu:0"):
        h = fb.exp(x, name="h")
    with fb.device("cpu:1"):
        y = fb.tanh(h, name="y")
    with fb.Session(cpus=2) as sess:
        return fb.GraphView(color=sess.explain(y, {x: (1000,)}))


def tangle(operations: int) -> fb.GraphView:
    draw = random.Random(operations)
    made = [fb.placeholder(fb.float32, [4], name="x")]
    while len(made) < operations:
        made.append(fb.add(*draw.choices(made[-12:], k=2)))
    return fb.GraphView()


def numbers(route: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?[\d.]+", route)]


@pytest.mark.parametrize(
    "make",
    [
        classifier,
        alone,
        towers,
        planned,
        lambda: tangle(40),
        lambda: tangle(150),  # In plain layers.
    ],
    ids=["classifier", "alone", "towers", "planned", "tangle", "layers"],
)
@pytest.mark.parametrize("width", [700, 1600])
def test_static_and_live_are_one(
    make: Callable[[], fb.GraphView], width: int, tmp_path: Path, page: Any
) -> None:
    view = make()
    page.set_viewport_size({"width": width, "height": 900})
    view.export_html(tmp_path / "graph.html")
    page.goto((tmp_path / "graph.html").as_uri())
    shown = page.locator(".fb-graph[data-drawn]")
    shown.wait_for()
    live, static = saved_svg(shown), view._repr_mimebundle_()[0]["image/svg+xml"]
    one, other = boxes(live), boxes(static)
    assert list(one) == list(other)
    for name, box in one.items():
        assert box.place == pytest.approx(other[name].place, abs=0.11), name
        assert box[2:] == other[name][2:]
        assert set(other[name].texts) <= set(box.texts)
    lines, others = routes(live), routes(static)
    assert [re.sub(r"[-\d.]+", "", line) for line in lines] == [
        re.sub(r"[-\d.]+", "", line) for line in others
    ]
    for line, like in zip(lines, others, strict=True):
        assert numbers(line) == pytest.approx(numbers(like), abs=0.11)
