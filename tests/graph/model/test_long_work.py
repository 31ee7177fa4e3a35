"""Long work tells how far it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowbook as fb
from flowbook.graph.model import long_work
from tests.need import requires


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What was gone through, and how many items of it, in the order of its end."""
    found: list[tuple[str, int]] = []

    def tracked(items: Any, what: str) -> Any:
        count = 0
        for count, item in enumerate(items, 1):  # noqa: B007
            yield item
        found.append((what, count))

    monkeypatch.setattr(long_work, "_tracker", tracked)
    return found


def test_loading_and_importing_tell_of_each_operation(told: Any, tmp_path: Path) -> None:
    fb.square(fb.placeholder(fb.float32, []), name="y")
    graph = fb.get_default_graph()
    graph.save(tmp_path / "graph.fb")
    loaded = fb.Graph.load(tmp_path / "graph.fb")
    fb.import_graph_def(loaded)
    assert told == [("loading", 2), ("importing", 2)]
    assert len(graph.operations) == 4


@requires(module="onnx")
def test_reading_a_model_tells_of_its_nodes(told: Any, tmp_path: Path) -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    fb.onnx.save({"y": fb.exp(fb.tanh(x))}, {"x": x}, tmp_path / "model.onnx")
    fb.onnx.load(tmp_path / "model.onnx")
    assert told == [("reading", 3)]  # The output's name is a node's too.


def test_without_anyone_to_show_it_the_items_are_what_they_were() -> None:
    items = [1, 2]
    assert long_work._untold(items, "loading") is items
