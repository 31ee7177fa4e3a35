"""Notebooks are stored without the state of their widgets.

With it, an exported page stays blank until a kernel is there; without it, it shows the static
form of everything. It also grows the file with every save.
"""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "docs", "examples", "labextension/src", "notebooks", "tests", "tools")
NOTEBOOKS = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_holds_no_widget_state(path: Path) -> None:
    metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    assert "widgets" not in metadata, (
        f"{path.name}: delete metadata.widgets (JupyterLab: Settings, untick "
        "'Save Widget State Automatically', and save again)"
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_holds_no_view_of_a_kernel_that_has_ended(path: Path) -> None:
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            views = [kind for kind in output.get("data", {}) if kind.endswith("view+json")]
            assert not views, f"{path.name}: python notebooks/store_outputs.py {path.name}"
