"""Loops with two forms of one meaning: NumPy's, which is there at once, and machine code.

Invariant: both forms write the same bits, so a caller never knows which one ran. Who can compile
(`flowbook/exec/kernels/`) is told of a loop that has become hot, and gives it its machine code
whenever it likes; until then, and where nobody can, NumPy's form runs.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

WORTH = 0.05
"""Seconds in NumPy's form after which a loop is hot: about what it takes to compile it."""

# So many turns at a time a body makes on arrays: as many calls of fewer would cost more, and those
# of more are slower outside a core's cache.
_CHUNK = 24576


class Hot:
    """What NumPy's form does until machine code for it is worth compiling.

    Args:
        name: what people know it by.

    Attributes:
        native: the machine code; None as long as NumPy's form serves.
        seconds: how long NumPy's form has run.
    """

    native: Any

    def __init__(self, name: str) -> None:
        self.name = name
        self.native = None
        self.seconds = 0.0

    def ran(self, seconds: float) -> None:
        """Add to the time that NumPy's form has taken, and say so if it is hot now."""
        self.seconds += seconds
        if self.seconds > WORTH:
            _when_hot(self)


class HotLoop(Hot):
    """A loop whose every turn makes some numbers of an array.

    It is called with the array to fill, then the scalars, then the arrays that turns read.

    Args:
        name: what people know it by.
        body: one turn, `body(index, *scalars, *elements)`, returns `width` numbers; `index` counts
            turns from 0, `elements` are those of the arrays at it. It consists of operators and
            NumPy's functions, which it applies to symbols when it is compiled. All that it is
            given are unsigned integers of 64 bits that wrap around; what it returns is truncated
            to `makes`, or has been given its dtype by `view`.
        numpy: fills the array with the same numbers. If left out, the body does, on arrays of all
            turns' numbers.
        makes: the dtype of what is made.
        width: how many numbers a turn makes.
        scalars: how many scalars there are.
        arrays: how many arrays; uint64, contiguous, an element for each turn.
        trial: scalars and arrays of a call on which machine code is compared with NumPy's form
            before it is used.

    Attributes:
        native: the machine code, called as the loop is.
    """

    native: Callable[..., None] | None

    def __init__(
        self,
        name: str,
        body: Callable[..., Any],
        numpy: Callable[..., None] | None = None,
        *,
        makes: DTypeLike,
        width: int,
        scalars: int,
        arrays: int = 0,
        trial: tuple[Any, ...],
    ) -> None:
        super().__init__(name)
        self.body = body
        self.numpy = numpy or self._body_on_arrays
        self.makes = np.dtype(makes)
        self.width = width
        self.scalars = scalars
        self.arrays = arrays
        self.trial = trial
        loops[name] = self

    def __call__(self, out: NDArray[Any], *inputs: Any) -> None:
        """Fill `out`, one-dimensional, contiguous and a multiple of `width` long."""
        native = self.native
        if native is not None:
            native(out, *inputs)
            return
        start = perf_counter()
        self.numpy(out, *inputs)
        self.ran(perf_counter() - start)

    def _body_on_arrays(self, out: NDArray[Any], *inputs: Any) -> None:
        rows = out.reshape(-1, self.width)
        scalars = [np.uint64(scalar) for scalar in inputs[: self.scalars]]
        arrays = inputs[self.scalars :]
        for start in range(0, len(rows), _CHUNK):
            part = slice(start, start + _CHUNK)
            index = np.arange(start, min(start + _CHUNK, len(rows)), dtype=np.uint64)
            made = self.body(index, *scalars, *(array[part] for array in arrays))
            for column, numbers in zip(rows[part].T, made, strict=True):
                column[:] = numbers


loops: dict[str, Hot] = {}
"""All that may become hot, by its name."""


def _nobody_compiles(hot: Hot) -> None:
    pass


_when_hot: Callable[[Hot], None] = _nobody_compiles


def compile_with(act: Callable[[Hot], None]) -> None:
    """Have a function called with what is hot after each of its runs in NumPy's form.

    Args:
        act: returns soon, and raises nothing.
    """
    global _when_hot
    _when_hot = act
