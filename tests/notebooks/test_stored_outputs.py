"""The notebooks are stored with their outputs, which say nothing of the machine that made them.

`notebooks/store_outputs.py` stores them so. nbval compares them with those of a new run.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted(Path(__file__).parents[2].glob("notebooks/*.ipynb"))

# An address of an object, a file of a kernel's cell, an absolute path.
OF_THE_MACHINE = re.compile(r"0x[0-9a-f]{6,}|ipykernel_\d+|(?<![\w.:/<])/(?:\w[\w.-]*/)+\w")

pytestmark = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)


def texts(output: nbformat.NotebookNode) -> Iterator[str]:
    """Yield what an output says, in every form that is text."""
    match output.output_type:
        case "stream":
            yield output.text
        case "error":
            yield from (output.evalue, *output.traceback)
        case _:
            yield from (
                form for kind, form in output.data.items() if not kind.startswith("image/p")
            )


def test_outputs_say_nothing_of_the_machine(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    said = [text for cell in cells for out in cell.get("outputs", []) for text in texts(out)]
    assert said
    assert [match for text in said for match in OF_THE_MACHINE.findall(text)] == []


def test_cells_ran_once_from_top_to_bottom(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    counts = [cell.execution_count for cell in cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))


def test_only_cells_that_say_so_fail(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        failed = any(out.output_type == "error" for out in cell.get("outputs", []))
        assert failed is ("raises-exception" in cell.metadata.get("tags", []))
