"""What a notebook shows without a kernel: deterministic, without addresses, text stays text."""

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import flowbook as fb
from flowbook.widgets import install
from flowbook.widgets.graphs.svg import graph_svg
from flowbook.widgets.tables import operation_html, session_html, tensor_html, variable_html
from tests.notebook_shell import interactive_shell
from tests.widgets.graphs.drawn_graph import SVG, boxes, edges


@pytest.fixture
def shell() -> Iterator[Any]:
    with interactive_shell() as shell:
        install(shell)
        yield shell


def build() -> dict[str, Any]:
    with fb.Graph().as_default() as graph:
        x = fb.placeholder(fb.float32, [None, 2], name="x")
        W = fb.Variable(np.zeros((2, 3), np.float32), name="W")
        with fb.name_scope("layer"), fb.device("/device:cpu:0"):
            y = fb.matmul(x, W, name="y")
        session = fb.Session(graph=graph)
    return {"x": x, "W": W, "y": y, "op": y.op, "graph": graph, "session": session}


def test_every_type_has_its_forms(shell: Any) -> None:
    for name, value in build().items():
        data, _ = shell.display_formatter.format(value)
        rich = {"image/svg+xml", "image/png"} if name == "graph" else {"text/html"}
        assert set(data) == {"text/plain", *rich}, name
        data.pop("image/png", None)
        assert not re.search(r"0x[0-9a-f]{6}", "".join(data.values()))


def test_forms_are_deterministic(shell: Any) -> None:
    first, second = build(), build()
    for name in first:
        assert shell.display_formatter.format(first[name]) == shell.display_formatter.format(
            second[name]
        ), name


def test_operation_table() -> None:
    html = operation_html(build()["op"])
    for text in ("layer/y", "MatMul", "x:0", "float32 [?, 2]", "W/read:0", "/device:cpu:0"):
        assert text in html
    assert f"{__file__.rpartition('/')[2]}, line" in html
    assert "fb.matmul(x, W, name=&quot;y&quot;)" in html


def test_tensor_and_variable_tables() -> None:
    made = build()
    assert "taken by</th><td" in tensor_html(made["x"])
    html = variable_html(made["W"])
    for text in ("Variable <code>W</code>", "[2, 3]", "trainable", "yes", "W/initial_value:0"):
        assert text in html


def test_session_table() -> None:
    session = build()["session"]
    assert "open" in session_html(session)
    session.close()
    assert "closed" in session_html(session)


def test_large_and_small_constants() -> None:
    assert "[1.0, 2.0]" in operation_html(fb.constant([1.0, 2.0]).op)
    html = operation_html(fb.constant(np.zeros((100, 100))).op)
    assert "float64 [100, 100]" in html
    assert len(html) < 2_000


def test_many_inputs_are_cut() -> None:
    op = fb.add_n([fb.constant(1.0) for _ in range(100)]).op
    assert "and 88 more" in operation_html(op)


HOSTILE = "<script>alert('x')</script>&\"\x00\x1b[31m\ud800"
SHORT = '<script>&"\x00\x1b\ud800\uffff'


def test_hostile_text_stays_text() -> None:
    x = fb.placeholder(fb.float32, [1], name="x")
    y = fb.identity(x, name="y")
    # Names are checked when operations are built; a picture does not rely on it.
    graph = x.graph
    for operation in graph.operations:
        operation.name = f"{operation.name}{HOSTILE}" * 20_000
    y.op.name = SHORT
    x.op.attributes = {**x.op.attributes, "note": HOSTILE}
    svg, html = graph_svg(graph), operation_html(y.op) + operation_html(x.op) + tensor_html(x)
    for text in (svg, html):
        assert "<script" not in text
        assert len(text) < 20_000
        text.encode()
    root = ElementTree.fromstring(svg)
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert any(text is not None and text.startswith("x<script>alert") for text in texts)
    assert any(
        text is not None and text.endswith('<script>&"\ufffd\ufffd\ufffd\ufffd)') for text in texts
    )


def test_picture_is_xml_of_its_own() -> None:
    root = ElementTree.fromstring(graph_svg(build()["graph"]))
    assert root.attrib["role"] == "img"
    svg = ElementTree.tostring(root, encoding="unicode")
    # Pictures of one page must not meet: no identifiers, nothing fetched.
    assert " id=" not in svg
    assert "href" not in svg
    assert "url(" not in svg


def test_picture_of_an_empty_graph() -> None:
    assert "0 operations" in graph_svg(fb.Graph())


def test_picture_of_a_huge_graph_is_small() -> None:
    with fb.Graph().as_default() as graph:
        x = fb.placeholder(fb.float32, [], name="x")
        for i in range(400):
            with fb.name_scope(f"s{i}"):
                x = fb.identity(x) + x
    assert len(graph_svg(graph)) < 60_000


def wide_graph() -> fb.Graph:
    """Twelve blocks of long names in one layer, each unlike the others."""
    with fb.Graph().as_default() as graph:
        x = fb.placeholder(fb.float32, [4], name="x")
        made = []
        for i in range(12):
            with fb.name_scope(f"a_tower_of_a_rather_long_name_{i}"):
                y = x
                for _ in range(i + 1):
                    y = fb.tanh(y)
                made.append(y)
        for i in range(11):
            fb.add_n([made[i], made[i + 1]], name=f"sum_{i}")
    return graph


@pytest.mark.parametrize("make", [wide_graph, lambda: build()["graph"]])
def test_pictures_fit_the_column_and_stay_legible(make: Any) -> None:
    root = ElementTree.fromstring(graph_svg(make()))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    _, _, inner_width, inner_height = map(float, root.attrib["viewBox"].split())
    assert width <= 820
    assert height / inner_height == pytest.approx(width / inner_width, rel=0.01)
    smallest = min(float(t.attrib["font-size"]) for t in root.iter() if "font-size" in t.attrib)
    assert smallest * width / inner_width >= 9


def test_stale_table(shell: Any) -> None:
    graph = build()["graph"]
    assert "nothing is stale" in shell.display_formatter.format(graph.stale())[0]["text/html"]


def test_pictures_flow_one_way_after_a_redefinition() -> None:
    """Kept operations come first in the order of construction, whatever feeds them now."""
    with fb.Graph().as_default() as graph:
        x = fb.placeholder(fb.float32, [2], name="x")
        last = fb.identity(x, name="output")
        first = fb.tanh(x, name="layer")
    last.op.inputs = (first,)
    picture = graph_svg(graph)
    assert edges(picture) == {("x", "first (layer)"), ("first (layer)", "last (output)")}
    # So few lie side by side.
    lefts = {name: box.place[0] for name, box in boxes(picture).items()}
    assert lefts["x"] < lefts["first (layer)"] < lefts["last (output)"]


def test_what_a_run_needs_stands_out_in_the_picture() -> None:
    with fb.name_scope("before"):
        x = fb.placeholder(fb.float32, [2], name="x")
        y = fb.square(x)
    with fb.name_scope("middle"):
        z = fb.exp(y)
    with fb.name_scope("after"):
        fb.add(z, fb.exp(z), name="sum")
    fb.identity(y, name="aside")
    view = fb.GraphView(fetches=["after/sum:0"], feeds=[z])
    picture = view._repr_mimebundle_()[0]["image/svg+xml"]
    found = {
        name: (box.is_faint, {"fed", "fetched"}.intersection(box.texts))
        for name, box in boxes(picture).items()
    }
    assert found == {
        "before": (True, set()),
        "middle": (False, {"fed"}),
        "after": (False, {"fetched"}),
        "aside": (True, set()),
    }
    root = ElementTree.fromstring(picture)
    faint = [group for group in root.iter(f"{SVG}g") if "opacity" in group.attrib]
    assert sum(group.find(f"{SVG}path") is not None for group in faint) == 2
    plain = fb.GraphView()._repr_mimebundle_()[0]["image/svg+xml"]
    assert "opacity" not in plain
