"""The assertion that the shapes of several tensors go together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.op_def import HOST, REQUIRED, OpDef
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Dims, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import ASSERTS
from flowbook.graph.numerics.tensor_text import text_of
from flowbook.graph.ops.basis.constants import convert_to_tensor, no_op

__all__ = ["assert_shapes"]

# An int is a size, a letter or word one that is the same wherever it stands, None any. The first
# may be "...": any number of dimensions of any size.
Sizes = tuple[int | str | None, ...]


def _conflict(
    names: Sequence[str], shapes: Sequence[Dims | None], wanted: Sequence[Sizes]
) -> tuple[int, str] | None:
    """Which is the first shape that does not fit, and why; None if all can fit."""
    known: dict[str, tuple[int, str]] = {}
    for k, (name, dims, sizes) in enumerate(zip(names, shapes, wanted, strict=True)):
        if dims is None:
            continue
        inner = sizes[1:] if sizes[:1] == ("...",) else sizes
        what = f"{name} has the shape {Shape.of(dims)}, not [{', '.join(map(_text, sizes))}]"
        if len(dims) < len(inner) or (inner is sizes and len(dims) > len(inner)):
            return k, what
        for size, dim in zip(inner, dims[len(dims) - len(inner) :], strict=True):
            if dim is None or size is None:
                continue
            expected, where = (
                (size, "") if isinstance(size, int) else known.setdefault(size, (dim, name))
            )
            if dim != expected:
                return k, f"{what}: {size} is {expected} in {where}" if where else what
    return None


def _text(size: int | str | None) -> str:
    return "?" if size is None else str(size)


def _no_conflict(
    values: Sequence[Tensor], names: Any, sizes: Any, message: str, **_: Any
) -> list[Shape]:
    found = _conflict(names, [t.shape.dims for t in values[: len(names)]], sizes)
    if found is not None:
        raise InvalidArgumentError(f"{message}{found[1]}")
    return []


def _check(
    xp: Any,
    *values: Any,
    names: tuple[str, ...],
    sizes: tuple[Sizes, ...],
    message: str,
    summarize: int,
) -> tuple[()]:
    tensors, data = values[: len(names)], values[len(names) :]
    found = _conflict(names, [t.shape for t in tensors], sizes)
    if found is not None:
        shown = " ".join(text_of(v, summarize) for v in data or [tensors[found[0]]])
        raise InvalidArgumentError(f"assertion failed: {message}{found[1]}\n{shown}")
    return ()


# The values are the tensors that have names, and after them what an error shows.
assert_shapes_op: OpDef[Operation] = OpDef(
    "AssertShapes",
    "values: *values ->",
    attributes={"names": REQUIRED, "sizes": REQUIRED, "message": "", "summarize": 3},
    infer=_no_conflict,
    kernel=_check,
    kinds=HOST,
    touches=ASSERTS,
    only_moves=True,
)


@assert_shapes_op.front
@composed
def assert_shapes(
    shapes: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fail the step unless the shapes of tensors go together.

    Args:
        shapes: pairs of a tensor and its shape, or a dict from one to the other. A shape is made
            of ints; of strings, such as "N", for sizes that are the same wherever one stands; and
            of None or "." for any; that of a scalar is (). With "..." or "*" first it is that of
            the last dimensions. None in place of a shape is any.
        data: a list of tensors or values that the error shows; by default the tensor that does not
            fit.
        summarize: how many elements at the beginning and the end of each dimension it shows, 3 by
            default; -1 shows all.
        message: what the error says first.

    Returns:
        The operation. It runs if it is fetched, or if something waits for it.

    Raises:
        InvalidArgumentError: if they do not; in the run, where it is known only then.

    >>> import flowbook as fb
    >>> x, w = fb.placeholder(fb.float32, [None, 3]), fb.zeros([3, 2])
    >>> check = fb.assert_shapes([(x, ("N", "D")), (w, ("D", 2))])
    >>> with fb.control_dependencies([check]):
    ...     y = x @ w
    """
    pairs = shapes.items() if isinstance(shapes, Mapping) else shapes
    tensors, sizes = [], []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InvalidTypeError(f"'shapes' are pairs of a tensor and its shape, not {pair!r}")
        tensors.append(convert_to_tensor(pair[0]))
        sizes.append(_sizes(pair[1]))
    how: dict[str, Any] = {
        "names": [t.name for t in tensors],
        "sizes": sizes,
        "message": f"{message}: " if message else "",
    }
    _no_conflict(tensors, **how)
    if all(t.shape.is_fully_defined for t in tensors):
        return no_op(name=name)
    return assert_shapes_op(
        [*tensors, *(data or [])],
        **how,
        summarize=3 if summarize is None else summarize,
        name=name,
    )


def _sizes(shape: Any) -> Sizes:
    if shape is None or (isinstance(shape, Shape) and shape.dims is None):
        return ("...",)
    if not isinstance(shape, Iterable):
        raise InvalidTypeError(
            f"a shape is a list of sizes, not {shape!r}", hint="that of a scalar is ()"
        )
    return tuple(_size(k, size) for k, size in enumerate(shape))


def _size(k: int, size: Any) -> int | str | None:
    if size is None or size == ".":
        return None
    if size is Ellipsis or size in ("*", "..."):
        if k:
            raise InvalidArgumentError("'...' stands before the last dimensions only")
        return "..."
    if isinstance(size, str) and not size.isdigit():
        return size
    try:
        return int(size)
    except (TypeError, ValueError):
        raise InvalidTypeError(f"a size is an int, a string or None, not {size!r}") from None
