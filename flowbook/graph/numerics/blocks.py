"""Elementwise steps on large arrays, block by block: what lies between them stays in the cache.

On whole arrays every step reads and writes main memory. Here a loop is generated that takes all
steps for one block before the next block begins; the last one writes into the result.

Invariant: the bits are those of the same steps on whole arrays, of 64 elements or more. NumPy
computes 64 elements alike wherever they lie in an array, and blocks are multiples of that.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.numerics import vectorised

# So many elements make a block: a few such arrays fit into a third-level cache on any machine.
# Smaller blocks, for the second level, gain less than the calls for them cost.
BLOCK = 1 << 18

# The last block is not shorter, as NumPy computes complex numbers differently where they are few.
_SHORTEST = 64

# What takes the place of functions that are not vectorised, or have no result to write to.
_REPLACED: dict[str, Callable[..., Any]] = {
    "maximum": vectorised.maximum,
    "minimum": vectorised.minimum,
    "reciprocal": vectorised.reciprocal,
    "where": vectorised.where,
}


class Step(NamedTuple):
    """One call of an elementwise function.

    Attributes:
        text: what the step computes, by which later steps name it, such as "exp(negative(x))".
        function: a universal function of NumPy with one result, or "where".
        arguments: names of parameters, texts of earlier steps, and numbers as Python writes them.
    """

    text: str
    function: str
    arguments: tuple[str, ...]


def least_size(steps: Iterable[Step]) -> int:
    """The number of elements from which on blocks are faster than whole arrays."""
    return 1 << 14 if any(step.function in _REPLACED for step in steps) else 1 << 17


class _Loop(NamedTuple):
    """Steps as a function that takes them for block after block.

    Attributes:
        function: called with the blocks, which are tuples of all parameters and results, and with
            buffers of a block's size.
        results: the dtypes of the results.
        buffers: the dtypes of the buffers.
    """

    function: Callable[..., None]
    results: list[Any]
    buffers: list[Any]


class Blocks:
    """Steps to be taken block by block.

    Args:
        parameters: the names of inputs and attributes.
        steps: in an order in which they can be taken.
        outputs: the texts of those steps whose results are wanted.

    >>> steps = [Step("exp(x)", "exp", ("x",)), Step("add(exp(x), 1)", "add", ("exp(x)", "1"))]
    >>> (found,) = Blocks(["x"], steps, ["add(exp(x), 1)"]).evaluate([np.zeros(3)])
    >>> print(found)
    [2. 2. 2.]
    """

    def __init__(
        self, parameters: Sequence[str], steps: Sequence[Step], outputs: Sequence[str]
    ) -> None:
        self._parameters = parameters
        self._outputs = outputs
        needed = {*outputs}
        for step in reversed(steps):
            if step.text in needed:
                needed.update(step.arguments)
        self._steps = [step for step in steps if step.text in needed]
        # Two steps save one pass through memory, which is soon lost to more calls.
        self._length = BLOCK if len(self._steps) > 2 else 4 * BLOCK
        self._loops: dict[tuple[Any, ...], _Loop | None] = {}

    def evaluate(self, given: Sequence[Any]) -> list[Any] | None:
        """The results; None where whole arrays have to be taken at once.

        Args:
            given: a value for each parameter. Arrays of one shape in row-major order can be taken
                in blocks, with numbers and arrays of no dimensions beside them.
        """
        shape: tuple[int, ...] = ()
        flat: list[Any] = []
        key: list[Any] = []
        for value in given:
            if not _is_cut(value):
                key.append((type(value), getattr(value, "dtype", None)))
                flat.append(value)
                continue
            if value.shape != (shape or value.shape) or not value.flags.c_contiguous:
                return None
            shape = value.shape
            key.append(value.dtype)
            flat.append(value.reshape(-1))
        loop = self._loop(tuple(key), flat)
        if loop is None:
            return None
        results = [np.empty(shape, dtype) for dtype in loop.results]
        flat += [result.reshape(-1) for result in results]
        size = results[0].size
        length = self._length
        whole = max(size - _SHORTEST, 0) // length * length
        if whole:
            parts = [v[:whole].reshape(-1, length) if _is_cut(v) else repeat(v) for v in flat]
            buffers = [np.empty(length, dtype) for dtype in loop.buffers]
            loop.function(zip(*parts, strict=False), *buffers)
            flat = [v[whole:] if _is_cut(v) else v for v in flat]
        loop.function([flat], *[np.empty(size - whole, dtype) for dtype in loop.buffers])
        return results

    def _loop(self, key: tuple[Any, ...], flat: Sequence[Any]) -> _Loop | None:
        if key not in self._loops:
            self._loops[key] = self._generate(flat)
        return self._loops[key]

    def _generate(self, flat: Sequence[Any]) -> _Loop | None:
        """The loop for parameters of these dtypes; what dtypes follow is seen on one element."""
        samples: dict[str, Any] = {
            name: value[:1] if _is_cut(value) else value
            for name, value in zip(self._parameters, flat, strict=True)
        }
        for step in self._steps:
            values = [samples[a] if a in samples else ast.literal_eval(a) for a in step.arguments]
            samples[step.text] = getattr(np, step.function)(*values)
            sample = samples[step.text]
            if not np.ndim(sample) or sample.dtype.hasobject:
                return None  # Numbers alone, or objects, are no work for blocks.
        return self._write(samples)

    def _write(self, samples: Mapping[str, Any]) -> _Loop:
        order = {step.text: index for index, step in enumerate(self._steps)}
        last_use = {a: index for index, step in enumerate(self._steps) for a in step.arguments}
        parameters = {name: f"p{i}" for i, name in enumerate(self._parameters)}
        results = {text: f"r{i}" for i, text in enumerate(self._outputs)}
        # A result may hold, until its own step is taken, what is used up by then.
        ends = {place: order[text] for text, place in results.items()}
        dtypes = {place: samples[text].dtype for text, place in results.items()}
        free = list(results.values())
        buffers: list[str] = []
        places = dict(parameters)
        lines = []
        for index, step in enumerate(self._steps):
            arguments = [places.get(argument, argument) for argument in step.arguments]
            # What is used for the last time may be overwritten, if it is no result.
            dying = {a: None for a in step.arguments if last_use[a] == index and a not in results}
            free += [places[a] for a in dying if places.get(a) in dtypes]
            dtype, last = samples[step.text].dtype, last_use.get(step.text, index)
            fitting = [p for p in free if dtypes[p] == dtype and last <= ends.get(p, last)]
            if step.text in results:
                place = results[step.text]
            elif fitting:
                place = fitting[0]
            else:
                place = f"b{len(buffers)}"
                buffers.append(place)
                dtypes[place] = dtype
            free = [other for other in free if other != place]
            places[step.text] = place
            lines.append(f"        {step.function}({', '.join(arguments)}, out={place})")
        taken = ", ".join([*parameters.values(), *results.values()])
        head = [f"def loop({', '.join(['blocks', *buffers])}):", f"    for {taken}, in blocks:"]
        names = {step.function for step in self._steps}
        scope = {name: _REPLACED.get(name) or getattr(np, name) for name in names}
        exec(compile("\n".join(head + lines), "<flowbook blocks>", "exec"), scope)
        return _Loop(
            scope["loop"],
            [dtypes[place] for place in results.values()],
            [dtypes[place] for place in buffers],
        )


def _is_cut(value: Any) -> bool:
    """Whether each block gets a part of a value, and not all of it."""
    return isinstance(value, np.ndarray) and value.ndim > 0
