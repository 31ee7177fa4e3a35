"""A notebook for TensorFlow 1 made one for Flowbook: its cells of code, as one program."""

from __future__ import annotations

import json
import re

from flowbook.port.program import parsed, ported
from flowbook.port.report import Left, Ported

_BEGIN = "# In[{}]: what stands here is ported as one program"
_BEGINS = re.compile(r"^[ \t]*# In\[(\d+)\]: what stands here is ported as one program\n", re.M)
# What only a notebook understands, kept as a comment in the meantime: magics and commands, whether
# a name takes what they give or not, and questions.
_MAGIC = re.compile(
    r"^([ \t]*)((?:[\w., ]+=[ \t]*)?(?:%%?[A-Za-z]|![^=]).*|\?.+|[\w.]+\?{1,2})$", re.M
)
_KEPT = "pass  # kept as it is: "
_IS_KEPT = re.compile(rf"^([ \t]*){_KEPT}", re.M)
# Cells whose first line says that they are Python all the same.
_PYTHON = re.compile(r"\s*%%(?:capture|prun|time|timeit)\b")
# What a person would have ported in what is kept.
_TENSORFLOW = re.compile(r"\btf\.|\bfeed_dict\b")


def ported_notebook(text: str) -> Ported:
    """Port a notebook; what its cells had shown goes.

    Magics stay as they are, and so do cells in another language (`%%bash`).

    Raises:
        ValueError: if it is no notebook, or a cell is no Python.
    """
    notebook = json.loads(text)
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError("it is no notebook of format 4")
    cells = [cell for cell in notebook["cells"] if cell.get("cell_type") == "code"]
    sources = ["".join(cell["source"]) for cell in cells]
    foreign = [bool(re.match(r"\s*%%", s)) and not _PYTHON.match(s) for s in sources]
    whole = ""
    first_lines = []
    for i, source in enumerate(sources):
        whole += _BEGIN.format(i) + "\n"
        first_lines.append(whole.count("\n"))
        if not foreign[i]:
            python = _MAGIC.sub(rf"\1{_KEPT}\2", source) + "\npass\n"
            _check(python, i + 1)
            whole += python
    result = ported(whole)
    if result.text == whole:
        return Ported(text, result.left)
    _, *parts = _BEGINS.split(result.text)
    for number, part in zip(parts[::2], parts[1::2], strict=True):
        cell = cells[int(number)]
        if foreign[int(number)]:
            continue
        source = _IS_KEPT.sub(r"\1", part).removesuffix("\npass\n")
        cell["source"] = source.splitlines(keepends=True)
        cell["outputs"], cell["execution_count"] = [], None
    left = [
        Left(source.count("\n", 0, kept.start()) + 1, f"cell {number}: kept as it is: {kept[2]}")
        for number, source in enumerate(sources, 1)
        for kept in _MAGIC.finditer(source)
        if _TENSORFLOW.search(kept[2])
    ]
    for line, said in result.left:
        number = max(i for i, first in enumerate(first_lines) if first < line)
        left.append(Left(line - first_lines[number], f"cell {number + 1}: {said}"))
    return Ported(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", left)


def _check(python: str, number: int) -> None:
    """Refuse a cell that is no Python, by its number."""
    try:
        parsed(python)
    except ValueError as error:
        raise ValueError(f"cell {number}: {error}") from None
