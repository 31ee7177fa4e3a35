"""Notebooks are stored without the state of their widgets.

With it, an exported page stays blank until a kernel is there; without it, it shows the static
form of everything. It also grows the file with every save.
"""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted(Path(__file__).parents[1].glob("notebooks/*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_holds_no_widget_state(path: Path) -> None:
    metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    assert "widgets" not in metadata, (
        f"{path.name}: delete metadata.widgets (JupyterLab: Settings, untick "
        "'Save Widget State Automatically', and save again)"
    )
