"""A notebook for TensorFlow 1 made one for Flowbook: its cells of code, as one program."""

from __future__ import annotations

import json
import re

from flowbook.port.program import ported
from flowbook.port.report import Left, Ported

_BEGIN = "# In[{}]: what stands here is ported as one program"
_BEGINS = re.compile(r"^[ \t]*# In\[(\d+)\]: what stands here is ported as one program\n", re.M)
# What only a notebook understands, kept as a comment in the meantime.
_MAGIC = re.compile(r"^(?=[%!])", re.M)
_KEPT = "# kept as it is: "


def ported_notebook(text: str) -> Ported:
    """Port a notebook; what its cells had shown goes.

    Raises:
        ValueError: if it is no notebook.
        libcst.ParserSyntaxError: if a cell is no Python.
    """
    notebook = json.loads(text)
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError("it is no notebook of format 4")
    cells = [cell for cell in notebook["cells"] if cell.get("cell_type") == "code"]
    sources = ["".join(cell["source"]) for cell in cells]
    whole = ""
    first_lines = []
    for i, source in enumerate(sources):
        whole += _BEGIN.format(i) + "\n"
        first_lines.append(whole.count("\n"))
        whole += _MAGIC.sub(_KEPT, source) + "\npass\n"
    result = ported(whole)
    if result.text == whole:
        return Ported(text, result.left)
    _, *parts = _BEGINS.split(result.text)
    for number, part in zip(parts[::2], parts[1::2], strict=True):
        cell = cells[int(number)]
        source = re.sub(r"^# kept as it is: ", "", part, flags=re.M).removesuffix("\npass\n")
        cell["source"] = source.splitlines(keepends=True)
        cell["outputs"], cell["execution_count"] = [], None
    left = []
    for line, said in result.left:
        number = max(i for i, first in enumerate(first_lines) if first < line)
        left.append(Left(line - first_lines[number], f"cell {number + 1}: {said}"))
    return Ported(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", left)
