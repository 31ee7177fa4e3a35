"""Plans as they are shown, and pages of them."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import flowbook as fb
from flowbook.widgets import front_end, install
from flowbook.widgets.placements.tables import (
    against_trace,
    differences,
    reasons,
    tables_html,
)
from tests.notebook_shell import interactive_shell


def plans(*others: list[str]) -> list[Any]:
    """A plan of two scopes on two devices, and those for other devices."""
    with fb.Graph().as_default():
        x = fb.placeholder(fb.float32, [2048, 2048], name="x")
        with fb.name_scope("first"), fb.device("cpu:0"):
            h = fb.exp(x, name="h")
        with fb.name_scope("second"):
            y = fb.reduce_sum(fb.matmul(h, h, name="p"), name="y")
        with fb.Session(graph=x.graph, cpus=2) as sess:
            return [sess.explain(y, {x: (2048, 2048)}, each) for each in (None, *others)]


def test_forms_are_a_picture_and_text() -> None:
    data, _ = fb.PlacementView(*plans())._repr_mimebundle_()
    assert set(data) == {"text/plain", "image/svg+xml", "image/png"}
    assert data["text/plain"] == "<PlacementView of a plan of 3 operations>"
    again, _ = fb.PlacementView(*plans())._repr_mimebundle_()
    assert again == data


def test_two_plans_stand_below_each_other_in_the_static_picture() -> None:
    view = fb.PlacementView(*plans(["gpu:0", "gpu:1"]))
    svg = ElementTree.fromstring(view._repr_mimebundle_()[0]["image/svg+xml"])
    texts = [each.text for each in svg.iter() if each.tag.endswith("}text")]
    assert texts.count("second") == 2
    assert "gpu:0" in texts
    assert texts.count("elsewhere in the other plan") == 2


def test_what_cannot_be_shown() -> None:
    [plan] = plans()
    with pytest.raises(ValueError, match="different graphs"):
        fb.PlacementView(plan, *plans())
    with pytest.raises(TypeError, match=r"a plan is what sess\.explain gives"):
        fb.PlacementView(plan, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"a trace is what sess\.trace gives"):
        fb.PlacementView(plan, trace=3)  # type: ignore[arg-type]
    with fb.Session() as sess, pytest.raises(ValueError, match="fetches nothing"):
        fb.PlacementView(sess.explain([]))


def test_a_plan_at_the_end_of_a_cell_is_tables_and_a_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(
        "IPython.display.publish_display_data", lambda data, metadata=None: shown.append(data)
    )
    with interactive_shell() as shell:
        install(shell)
        [plan] = plans()
        assert shell.display_formatter.format(plan) == ({}, {})
        with fb.Session() as sess:
            assert shell.display_formatter.format(sess.explain([])) == ({}, {})
    tables, picture, of_nothing = shown
    assert set(tables) == {"text/html", "text/plain"}
    assert tables["text/plain"] == str(plan)
    assert "<details><summary>Why operations run where they do in " in tables["text/html"]
    assert "image/svg+xml" in picture
    assert "<details>" not in of_nothing["text/html"]


def test_a_page_has_both_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = tmp_path / "flowbook.js"
    bundle.write_text("export const renderExportedPlacement = async () => 0;")
    monkeypatch.setattr(front_end, "BUNDLE", bundle)
    both = plans(["gpu:0"])
    sizes = []
    for i in (1, 2):
        fb.PlacementView(*both[:i]).export_html(tmp_path / "plan.html")
        page = (tmp_path / "plan.html").read_text()
        found = re.search(r'renderExportedPlacement\("([A-Za-z0-9+/=]+)"', page)
        assert found is not None
        sizes.append(len(found[1]))
    assert sizes[1] > 1.5 * sizes[0]
    fb.export_html(both[0], tmp_path / "whole.html")
    assert "renderExportedPlacement" in (tmp_path / "whole.html").read_text()


def test_reasons_stand_together_with_the_longest_first() -> None:
    [plan] = plans()
    table = reasons(plan)
    asked = [row for row in table.rows if row[1] == "'first/h' asks for /device:cpu:0"]
    assert [(row[0], row[3]) for row in asked] == [("cpu:0", "first/h")]
    total = sum(len(row[3].split(", ")) for row in table.rows)
    assert total == len(plan.operations)


def test_differences_are_counted_by_where_they_lead() -> None:
    here, there = plans(["gpu:0"])
    table = differences(here, there)
    moved = [op for op in here.operations if here.device(op) != there.device(op)]
    assert table.title.startswith(f"{len(moved)} operation")
    assert sum(int(row[2]) for row in table.rows) == len(moved)
    assert differences(here, here).title.startswith("0 operations elsewhere")


def test_measured_stands_beside_predicted() -> None:
    x = fb.placeholder(fb.float32, [1000], name="x")
    y = fb.exp(x, name="y")
    with fb.Session() as sess:
        plan = sess.explain(y, {x: (1000,)})
        with sess.trace() as trace:
            sess.run(y, {x: np.zeros(1000)})
    table = against_trace(plan, trace)
    assert [row[0] for row in table.rows] == ["step", "busy cpu:0", "y"]
    assert all(row[3] for row in table.rows)
    assert table.notes == []
    view = fb.PlacementView(plan, trace=trace)
    assert "measured" in view._repr_mimebundle_()[0]["image/svg+xml"]


def test_hostile_names_stay_text() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    y = fb.exp(x, name="y")
    with fb.Session() as sess:
        plan = sess.explain(y, {x: (2,)})
    # Names are checked when operations are built; what is shown does not rely on it.
    y.op.name = "<script>alert(1)</script>"
    svg = fb.PlacementView(plan)._repr_mimebundle_()[0]["image/svg+xml"]
    for text in (svg, tables_html([plan], None)):
        assert "<script" not in text
        assert "&lt;script&gt;" in text
