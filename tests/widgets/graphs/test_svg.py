"""The static picture of a graph: what a live view shows of it at first."""

import re
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.widgets.graphs.svg import graph_svg
from tests.widgets.graphs.drawn_graph import Box, boxes, edges


def drawn() -> dict[str, Box]:
    return boxes(graph_svg(fb.get_default_graph()))


def mlp(layers: int) -> None:
    h = fb.placeholder(fb.float32, [None, 8], name="x")
    for i in range(layers):
        W = fb.Variable(fb.random_normal([8, 8]), name=f"W{i}")
        b = fb.Variable(fb.zeros([8]), name=f"b{i}")
        h = fb.nn.relu(h @ W + b)
    fb.train.AdamOptimizer(0.1).minimize(fb.reduce_mean(h))


def test_scopes_variables_inputs_and_operations_say_what_they_are() -> None:
    x = fb.placeholder(fb.float32, [None, 2], name="x")
    W = fb.Variable([1.0, 2.0], name="W")
    with fb.name_scope("layer"):
        y = fb.reduce_sum(x * W)
    fb.identity(y, name="out")
    found = drawn()
    assert {name: box.texts for name, box in found.items()} == {
        "x": ["x", "float32 [?, 2]"],
        "W": ["W", "float32 [2]"],
        "layer": ["layer", "2 operations"],
        "out": ["out", "Identity []"],
    }
    assert len({box.fill for box in found.values()}) == 4
    assert edges(graph_svg(x.graph)) == {("x", "layer"), ("W", "layer"), ("layer", "out")}


def test_an_operation_and_the_constants_of_its_arguments_are_one_box() -> None:
    mine = fb.OpDef(
        "ConstantOfBlocks",
        "-> y: float32",
        attributes={"value": fb.REQUIRED},
        infer=lambda value: fb.Shape([]),
        kernel=lambda xp, value: value,
        is_constant=True,
    )
    for name, given in (("plain", fb.constant), ("users", lambda value: mine(value=value))):
        with fb.name_scope(name) as scope:
            one = given(np.float32(1.0))
        fb.add(fb.placeholder(fb.float32, [2]), one, name=scope)
    found = drawn()
    assert found["plain"].texts == ["plain", "Add [2]"]
    assert found["users"].texts == ["users", "Add [2]"]


def test_one_scope_alone_is_opened() -> None:
    with fb.name_scope("model"), fb.name_scope("inner"):
        x = fb.placeholder(fb.float32, [2], name="x")
        fb.tanh(x, name="y")
    found = drawn()
    assert set(found) == {"model", "model/inner", "model/inner/x", "model/inner/y"}
    left, top, width, height = found["model/inner"].place
    for name in ("x", "y"):
        x0, y0, w, h = found[f"model/inner/{name}"].place
        assert left < x0 < x0 + w < left + width
        assert top < y0 < y0 + h < top + height


def test_optimizers_stand_aside_and_the_model_does_not() -> None:
    mlp(2)
    picture = graph_svg(fb.get_default_graph())
    assert ">set aside<" in picture
    found = boxes(picture)
    aside = {"gradients", "Adam"}
    # Lines run to the right here, so that is below.
    bottom = max(box.place[1] + box.place[3] for name, box in found.items() if name not in aside)
    assert min(found[name].place[1] for name in aside) > bottom
    joined = {name for edge in edges(picture) for name in edge}
    assert joined == found.keys() - aside


@pytest.mark.parametrize("count", [199, 200])
def test_where_boxes_are_many_numbered_ones_that_are_alike_are_one(count: int) -> None:
    x = fb.placeholder(fb.float32, [4], name="x")
    made = []
    for i in range(count):
        with fb.name_scope(f"tower_{i}"):
            made.append(fb.tanh(x) * 2.0)
    picture = graph_svg(x.graph)
    if count == 199:
        assert len(boxes(picture)) == 200
        return
    assert {name: box.texts[1] for name, box in boxes(picture).items()} == {
        "x": "float32 [4]",
        "tower_0 … tower_199": "200 alike",
    }
    assert "with one box for each series of what is alike" in picture
    assert len(picture) < 5_000


def test_too_many_boxes_are_said_to_be() -> None:
    x = fb.placeholder(fb.float32, [4], name="x")
    for i in range(201):
        fb.tanh(x, name="t" + "".join(chr(ord("a") + int(digit)) for digit in str(i)))
    picture = graph_svg(x.graph)
    assert boxes(picture) == {}
    assert "202 boxes side by side are too many for a picture." in picture


def test_what_is_too_small_to_be_read_is_left_out() -> None:
    def many(layers: int) -> str:
        with fb.Graph().as_default() as graph:
            x = fb.placeholder(fb.float32, [4], name="x")
            rows: Any = [x]
            for _ in range(layers):
                rows = [fb.add_n(rows) for _ in range(8)]
        return graph_svg(graph)

    few, all_of_it = many(1), many(14)
    assert ">AddN<" in few
    assert ">float32 [4]<" in few
    # Names are larger than the picture's scale would make them.
    width = float(all_of_it.partition('viewBox="0 0 ')[2].partition(" ")[0])
    assert 820 / width < 0.5
    assert ">AddN_3<" in all_of_it
    assert ">float32 [4]<" not in all_of_it
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)"', all_of_it)]
    assert min(sizes) * 820 / width > 6.4


def test_equal_graphs_have_equal_pictures_whatever_was_drawn_before() -> None:
    def once() -> str:
        with fb.Graph().as_default() as graph:
            mlp(3)
        return graph_svg(graph)

    first = once()
    mlp(5)
    graph_svg(fb.get_default_graph())
    assert once() == first
