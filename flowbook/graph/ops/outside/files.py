"""Files as operations: their contents, and their names.

What files are is not the graph's business: each operation owns a resource that knows. Within a step
they are read and written in the order of construction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.definition.inference import uncounted
from flowbook.graph.definition.op_def import HOST, OpDef
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import SCALAR, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import FILES, OUTSIDE

__all__ = ["matching_files", "read_file", "write_file"]


def _check_scalar(what: str, tensor: Any) -> None:
    shape = Shape(tensor.shape)
    if not shape.is_compatible_with(SCALAR):
        raise InvalidArgumentError(f"{what} is a string scalar, not of shape {shape}")


def _one_content(filename: Tensor) -> Shape:
    _check_scalar("the name of a file", filename)
    return SCALAR


def _read(xp: Any, files: Any, filename: Any) -> Any:
    content = np.empty((), object)
    content[()] = files.read(filename.item())
    return content


read_file = OpDef(
    "ReadFile",
    "filename: string -> contents: string",
    infer=_one_content,
    kernel=_read,
    kinds=HOST,
    touches=OUTSIDE,
    owns=FILES.name,
    only_moves=True,
    doc="""What is in a file: a string scalar.

    Args:
        filename: a path, or a URL that fsspec knows: a string scalar.

    Raises:
        NotFoundError: in the run, if there is no such file.
        FailedPreconditionError: in the run, if it may not be read.
    """,
)


def _written(filename: Tensor, contents: Tensor) -> list[Shape]:
    _check_scalar("the name of a file", filename)
    _check_scalar("the content of a file", contents)
    return []


def _write(xp: Any, files: Any, filename: Any, contents: Any) -> tuple[()]:
    files.write(filename.item(), contents.item())
    return ()


write_file: OpDef[Operation] = OpDef(
    "WriteFile",
    "filename: string, contents: string ->",
    infer=_written,
    kernel=_write,
    kinds=HOST,
    touches=OUTSIDE,
    owns=FILES.name,
    only_moves=True,
    doc="""Write a file, in place of one that is there, and the folders that lead to it.

    It is there whole or not at all, whatever ends the process meanwhile. Within a run files are
    read and written in the order of construction.

    Args:
        filename: a path, or a URL that fsspec knows: a string scalar.
        contents: what is to be in it: a string scalar.

    Raises:
        FailedPreconditionError: in the run, if it may not be written.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     sess.run(fb.write_file("memory://notes/one.txt", "first"))
    ...     print(sess.run(fb.read_file("memory://notes/one.txt")))
    ...     print(sess.run(fb.matching_files("memory://notes/*.txt")))
    b'first'
    [b'memory:///notes/one.txt']
    """,
)


def _some_names(pattern: Tensor) -> Shape:
    if pattern.shape.rank not in (None, 0, 1):
        raise InvalidArgumentError(
            f"a pattern is a string scalar, or several a vector, not of shape {pattern.shape}"
        )
    return Shape([None])


def _matching(xp: Any, files: Any, pattern: Any) -> Any:
    found = sorted({name for each in pattern.ravel() for name in files.matching(each)})
    names = np.empty(len(found), object)
    names[:] = found
    return names


matching_files = OpDef(
    "MatchingFiles",
    "pattern: string -> filenames: string",
    infer=_some_names,
    kernel=_matching,
    kinds=HOST,
    touches=OUTSIDE,
    owns=FILES.name,
    cost=uncounted,
    doc="""The names of the files that a pattern describes, sorted: a string vector.

    Args:
        pattern: a path, or a URL that fsspec knows, in which `*`, `?` and `[...]` stand for
            characters of one name, and `**` for folders; or a vector of several.
    """,
)
