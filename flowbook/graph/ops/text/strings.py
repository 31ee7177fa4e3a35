"""Text: joined, measured, cut, changed. Strings are sequences of bytes.

Kernels go through elements one by one: Python's bytes have no other arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import all_in_range, axes_or_tensor, reduced
from flowbook.graph.definition.inference import same_as_input
from flowbook.graph.definition.op_def import HOST, OpDef
from flowbook.graph.model.dtypes import INDICES
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.shape import broadcast as broadcast_shapes
from flowbook.graph.model.tensor import Tensor

__all__ = ["join", "length", "lower", "reduce_join", "strip", "substr", "upper"]


def mapped(function: Callable[..., Any], *arrays: Any, dtype: Any = object) -> Any:
    """An array of what a function makes of each element, of arrays that broadcast."""
    if len(arrays) > 1:
        arrays = tuple(np.broadcast_arrays(*arrays))
    result = np.empty(arrays[0].shape, dtype)
    items = zip(*(array.ravel().tolist() for array in arrays), strict=True)
    result.reshape(-1)[:] = [function(*item) for item in items]
    return result


# Joining


def _joined_shape(inputs: list[Tensor], separator: str) -> Shape:
    if not inputs:
        raise InvalidArgumentError("there is nothing to join")
    shape = inputs[0].shape
    for other in inputs[1:]:
        shape = broadcast_shapes(shape, other.shape)
    return shape


def _join(xp: Any, *inputs: Any, separator: str) -> Any:
    between = separator.encode()
    return mapped(lambda *items: between.join(items), *inputs)


join_op = OpDef(
    "StringJoin",
    "inputs: N*string -> output: string",
    attributes={"separator": ""},
    infer=_joined_shape,
    kernel=_join,
    kinds=HOST,
    only_moves=True,
)


@join_op.front
def join(inputs: Any, separator: str = "", name: str | None = None) -> Tensor:
    """Strings put together, elementwise.

    Args:
        inputs: a list of string tensors that broadcast.
        separator: what stands between two of them.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     sess.run(fb.strings.join([["a", "b"], "c"], separator="-"))
    array([b'a-c', b'b-c'], dtype=object)
    """
    if not isinstance(inputs, list | tuple):
        raise InvalidTypeError(f"what to join is a list of tensors, not {inputs!r}")
    return join_op(list(inputs), separator=separator, name=name)


def _reduced_shape(
    inputs: Tensor, axis: tuple[int, ...] | None, keepdims: bool, separator: str
) -> Shape:
    return reduced(inputs.shape, axis, keepdims)


def _reduce_join(
    xp: Any, inputs: Any, axis: tuple[int, ...] | None, keepdims: bool, separator: str
) -> Any:
    # The axis that is named first is joined first, so it is the innermost.
    axes = all_in_range(axis, inputs.ndim)
    axes = axes if axis is None else axes[::-1]
    kept = [i for i in range(inputs.ndim) if i not in axes]
    turned = np.transpose(inputs, (*kept, *axes))
    dims = turned.shape[: len(kept)]
    rows = turned.reshape(*dims, -1) if inputs.size else np.empty((*dims, 0), object)
    between = separator.encode()
    result = np.empty(dims, object)
    for place in np.ndindex(dims):
        result[place] = between.join(rows[place].tolist())
    return np.expand_dims(result, tuple(sorted(axes))) if keepdims else result


reduce_join_op = OpDef(
    "ReduceJoin",
    "inputs: string -> output: string",
    attributes={"axis": None, "keepdims": False, "separator": ""},
    infer=_reduced_shape,
    kernel=_reduce_join,
    kinds=HOST,
    axes="axis",
    only_moves=True,
)


@reduce_join_op.front
def reduce_join(
    inputs: Any,
    axis: Any = None,
    keepdims: bool = False,
    separator: str = "",
    name: str | None = None,
) -> Tensor:
    """Strings put together along axes.

    Args:
        inputs: a string tensor.
        axis: an int, or a sequence of ints of which the first is joined first; None joins all in
            row-major order.
        keepdims: keep the axes, with size 1.
        separator: what stands between two strings.
    """
    axes = axes_or_tensor(axis, inputs)
    return reduce_join_op(
        inputs, axis=axes, keepdims=bool(keepdims), separator=separator, name=name
    )


# Measuring and cutting


_UNITS = ("BYTE", "UTF8_CHAR")


def _characters(text: bytes) -> list[int]:
    """Where the characters of a text in UTF-8 begin, and where it ends."""
    # A byte 10xxxxxx continues a character.
    return [i for i, byte in enumerate(text) if byte & 0xC0 != 0x80] + [len(text)]


def _length(xp: Any, input: Any, unit: str) -> Any:
    if unit == "BYTE":
        return mapped(len, input, dtype=np.int32)
    return mapped(lambda text: len(_characters(text)) - 1, input, dtype=np.int32)


length = OpDef(
    "StringLength",
    "input: string -> output: int32",
    attributes={"unit": "BYTE"},
    choices={"unit": _UNITS},
    after_name=("unit",),
    infer=same_as_input,
    kernel=_length,
    kinds=HOST,
    only_moves=True,
    doc="""The lengths of strings, int32.

    Args:
        input: a string tensor.
        unit: "BYTE" counts bytes, "UTF8_CHAR" the characters of text in UTF-8.
    """,
    function="length",
)


def _part_shape(input: Tensor, pos: Tensor, count: Tensor, unit: str) -> Shape:
    return broadcast_shapes(input.shape, broadcast_shapes(pos.shape, count.shape))


def _substr(xp: Any, input: Any, pos: Any, count: Any, unit: str) -> Any:
    def part(text: bytes, start: int, size: int) -> bytes:
        ends = range(len(text) + 1) if unit == "BYTE" else _characters(text)
        last = len(ends) - 1
        if not -last <= start <= last:
            raise InvalidArgumentError(
                f"position {start} lies outside of {text!r:.60}, which has {last} "
                f"{'bytes' if unit == 'BYTE' else 'characters'}"
            )
        if size < 0:
            raise InvalidArgumentError(f"the length of a part is not negative: {size}")
        first = start + last if start < 0 else start
        return text[ends[first] : ends[min(first + size, last)]]

    return mapped(part, input, pos, count)


substr = OpDef(
    "Substr",
    "input: string, pos: I, len: I -> output: string",
    I=INDICES,
    attributes={"unit": "BYTE"},
    choices={"unit": _UNITS},
    after_name=("unit",),
    infer=_part_shape,
    kernel=_substr,
    kinds=HOST,
    only_moves=True,
    doc="""Parts of strings; what reaches beyond the end is cut off.

    Args:
        input: a string tensor.
        pos: where parts begin, int32 or int64, broadcasting with `input`; negative ones count from
            the end.
        len: how long they are, of the same dtype, likewise.
        unit: "BYTE" counts bytes, "UTF8_CHAR" the characters of text in UTF-8.

    Raises:
        InvalidArgumentError: in the run, if a part begins outside of its string.
    """,
)


# Changing


_ENCODINGS = ("", "utf-8")


def _cased(method: str) -> Callable[..., Any]:
    def kernel(xp: Any, input: Any, encoding: str) -> Any:
        if not encoding:
            return mapped(getattr(bytes, method), input)
        change = getattr(str, method)
        # What is no UTF-8 stays what it is.
        return mapped(
            lambda text: change(text.decode("utf-8", "surrogateescape")).encode(
                "utf-8", "surrogateescape"
            ),
            input,
        )

    return kernel


lower = OpDef(
    "StringLower",
    "input: string -> output: string",
    attributes={"encoding": ""},
    choices={"encoding": _ENCODINGS},
    infer=same_as_input,
    kernel=_cased("lower"),
    kinds=HOST,
    only_moves=True,
    function="lower",
    doc="""Strings with small letters: ASCII's, or all of Unicode with `encoding="utf-8"`.""",
)

upper = OpDef(
    "StringUpper",
    "input: string -> output: string",
    attributes={"encoding": ""},
    choices={"encoding": _ENCODINGS},
    infer=same_as_input,
    kernel=_cased("upper"),
    kinds=HOST,
    only_moves=True,
    function="upper",
    doc="""Strings with capital letters: ASCII's, or all of Unicode with `encoding="utf-8"`.""",
)

strip = OpDef(
    "StringStrip",
    "input: string -> output: string",
    infer=same_as_input,
    kernel=lambda xp, input: mapped(bytes.strip, input),
    kinds=HOST,
    only_moves=True,
    function="strip",
    doc="Strings without white space at their beginnings and ends.",
)
