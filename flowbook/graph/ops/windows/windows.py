"""Windows that move over axes: how arguments name them, where they lie, what shapes they give.

Convolutions and pools share this arithmetic. A window of `size` elements, `dilation` apart, moves
by `stride`. Padding is "VALID" (none), "SAME" (so much that there is a window for each `stride`
elements, the odd one after) or pairs of numbers of elements before and after.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from flowbook.graph.model.attributes import check_choice
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Arithmetic, Tensor

Padding = str | tuple[tuple[int, int], ...]

# Those that have a name.
PADDINGS = ("SAME", "VALID")


@dataclass(frozen=True, slots=True)
class AxisWindows:
    """The windows along one axis, all sizes known.

    Attributes:
        input: how many elements the axis has.
        size: how many elements a window has.
        stride: from one window to the next.
        dilation: from one element of a window to the next.
        before: the padding before the first element.
        after: the padding after the last one.
        output: how many windows there are.
    """

    input: int
    size: int
    stride: int
    dilation: int
    before: int
    after: int
    output: int

    @property
    def is_trivial(self) -> bool:
        """Whether each window is one element, in order."""
        return self.size == self.stride == 1 and self.before == self.after == 0

    @property
    def extent(self) -> int:
        """From a window's first element to behind its last."""
        return (self.size - 1) * self.dilation + 1

    def tap(self, k: int) -> tuple[slice, slice]:
        """The windows whose element `k` is not padding, and those elements of the input."""
        offset = k * self.dilation - self.before
        first = max(0, -(offset // self.stride))
        last = min(self.output, (self.input - 1 - offset) // self.stride + 1)
        if last <= first:
            return slice(0, 0), slice(0, 0)
        start = first * self.stride + offset
        stop = (last - 1) * self.stride + offset + 1
        return slice(first, last), slice(start, stop, self.stride)


def laid(
    inputs: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Padding,
    first_axis: int = 0,
) -> tuple[AxisWindows, ...]:
    """The windows along each axis.

    Args:
        inputs: the axes' numbers of elements.
        sizes: the windows' sizes; strides and dilations likewise for each axis.
        first_axis: which axis of a tensor is the first of them, for errors.

    Raises:
        InvalidArgumentError: if a window does not fit.
    """
    found = []
    for i, (input, size, stride, dilation) in enumerate(
        zip(inputs, sizes, strides, dilations, strict=True)
    ):
        output = output_size(input, size, stride, dilation, _along(padding, i), first_axis + i)
        assert output is not None
        if padding == "SAME":
            total = max((output - 1) * stride + (size - 1) * dilation + 1 - input, 0)
            before, after = total // 2, total - total // 2
        else:
            before, after = (0, 0) if isinstance(padding, str) else padding[i]
        found.append(AxisWindows(input, size, stride, dilation, before, after, output))
    return tuple(found)


def _along(padding: Padding, axis: int) -> str | tuple[int, int]:
    return padding if isinstance(padding, str) else padding[axis]


def output_size(
    input: int | None,
    size: int | None,
    stride: int,
    dilation: int,
    padding: str | tuple[int, int],
    axis: int,
) -> int | None:
    """How many windows there are along an axis; None while that is not known.

    Raises:
        InvalidArgumentError: if no window fits.
    """
    if size is not None and size < 1:
        raise InvalidArgumentError(f"a window has an element at least, not {size} along {axis}")
    if input is None:
        return None
    if padding == "SAME":
        return -(-input // stride)
    if size is None:
        return None
    before, after = (0, 0) if isinstance(padding, str) else padding
    extent = (size - 1) * dilation + 1
    if before + input + after == 0:
        return 0
    if extent > before + input + after:
        spread = f" with gaps of {dilation - 1}" if dilation > 1 else ""
        padded = f" with {before} + {after} of padding" if before + after else ""
        raise InvalidArgumentError(
            f"a window of {size}{spread} does not fit the {input} elements of axis {axis}{padded}",
            hint='padding="SAME" makes windows fit any size',
        )
    return (before + input + after - extent) // stride + 1


def output_dims(
    shape: Shape,
    sizes: Sequence[int | None],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Padding,
    first_axis: int = 0,
) -> tuple[int | None, ...]:
    """How many windows there are along each axis of a partial shape, from `first_axis` on."""
    if isinstance(padding, str):
        check_choice("padding", padding, PADDINGS)
    dims = (None,) * len(sizes) if shape.dims is None else shape.dims[first_axis:]
    return tuple(
        output_size(dims[i], sizes[i], strides[i], dilations[i], _along(padding, i), first_axis + i)
        for i in range(len(sizes))
    )


def taps(windows: Sequence[AxisWindows]) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
    """Each place in a window, the windows where it is no padding, and those elements."""
    for place in product(*(range(w.size) for w in windows)):
        both = [w.tap(k) for w, k in zip(windows, place, strict=True)]
        if all(out.stop > out.start for out, _ in both):
            yield place, tuple(out for out, _ in both), tuple(source for _, source in both)


# Arguments of public functions


def inner_rank(*tensors: Tensor) -> int:
    """How many dimensions lie between batch and channels, by the first tensor of known rank."""
    known = [t.shape for t in tensors if t.shape.rank is not None]
    if not known:
        raise InvalidArgumentError(
            f"over how many dimensions to go is not known: {tensors[0].name} has no known rank",
            hint="give a placeholder a shape, such as [None, None, None, 3]",
        )
    if known[0].dims is None or len(known[0].dims) < 3:
        raise InvalidArgumentError(
            f"windows move over the dimensions between batch and channels; {known[0]} has none"
        )
    return len(known[0].dims) - 2


def whole(what: str, value: Any) -> int:
    """A number that a user gave, as an int.

    Raises:
        InvalidTypeError: if it is not an integer.
    """
    try:
        if isinstance(value, Arithmetic):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise InvalidTypeError(
            f"{what} is fixed when the graph is built and made of ints, not {value!r}"
        ) from None


def numbers_of(what: str, value: Any, count: int) -> tuple[int, ...]:
    """A positive int for each axis of a tensor [batch, `count` dimensions, channels].

    Args:
        what: the argument's name.
        value: one number for all dimensions, one for each, or one for each axis.
    """
    given = tuple(whole(what, v) for v in (value if isinstance(value, Sequence) else [value]))
    if len(given) == 1:
        given *= count
    if len(given) == count:
        given = (1, *given, 1)
    if len(given) != count + 2:
        allowed = " or ".join(str(n) for n in sorted({1, count, count + 2}))
        raise InvalidArgumentError(f"{what} has {allowed} numbers, not {len(given)}: {list(given)}")
    if min(given) < 1:
        raise InvalidArgumentError(f"{what} is made of positive numbers, not {list(given)}")
    return given


def inner_numbers(what: str, value: Any, count: int) -> tuple[int, ...]:
    """A positive int for each dimension between batch and channels, given as for `numbers_of`."""
    given = numbers_of(what, value, count)
    if given[0] != 1 or given[-1] != 1:
        raise InvalidArgumentError(
            f"{what} is 1 along the batch and the channels, not {list(given)}"
        )
    return given[1:-1]


def padding_of(padding: Any, count: int) -> Padding:
    """Padding as an attribute: "SAME", "VALID", or a pair for each axis, batch and channels too."""
    if isinstance(padding, str):
        if padding in PADDINGS:
            return padding
        hint = f"write {padding.upper()!r}" if padding.upper() in PADDINGS else None
        raise InvalidArgumentError(
            f'padding is "SAME", "VALID" or a list of pairs, not {padding!r}', hint=hint
        )
    if isinstance(padding, Arithmetic) or not isinstance(padding, Sequence):
        raise InvalidTypeError(f'padding is "SAME", "VALID" or a list of pairs, not {padding!r}')
    rows = [list(p) if isinstance(p, Sequence) and not isinstance(p, str) else [] for p in padding]
    if len(rows) != count + 2 or any(len(row) != 2 for row in rows):
        raise InvalidArgumentError(
            f"padding has a pair for each of {count + 2} axes, not {padding!r}",
            hint=f"such as [[0, 0], {'[1, 1], ' * count}[0, 0]]",
        )
    pairs = tuple((whole("padding", a), whole("padding", b)) for a, b in rows)
    if any(width < 0 for pair in pairs for width in pair):
        raise InvalidArgumentError(f"a padding is not negative: {padding!r}")
    if pairs[0] != (0, 0) or pairs[-1] != (0, 0):
        raise InvalidArgumentError(f"the batch and the channels are not padded: {padding!r}")
    return pairs


def inner_padding(padding: Any, count: int) -> Padding:
    """Padding as an attribute, pairs for the dimensions between batch and channels only."""
    found = padding_of(padding, count)
    return found if isinstance(found, str) else found[1:-1]
