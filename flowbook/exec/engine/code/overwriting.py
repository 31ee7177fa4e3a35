"""Which results are put where an input lay that nothing needs any more.

A fresh array of a megabyte costs three times as much as the arithmetic: its memory is in no cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowbook.exec.engine.bind import Specs
from flowbook.exec.engine.units import Kernel, Unit
from flowbook.graph.model.registry import op_keyed

# Elements. What is smaller lies in a cache, wherever it is.
_LARGE = 1 << 14


def unshared(units: Sequence[Unit]) -> set[int]:
    """The values of units whose memory is a kernel's own make, and no other value's.

    Nothing keeps it: who takes it reads it and makes something else of it.
    """
    made: set[int] = set()
    kept: set[int] = set()
    for unit in units:
        if isinstance(unit, Kernel) and _is_pure(unit):
            if unit.is_single:
                made.update(unit.outputs)
        else:
            kept.update(unit.inputs)
    return made - kept


def _is_pure(kernel: Kernel) -> bool:
    """Whether it reads arrays and makes others, and neither keeps nor hands on what it is given."""
    definition = op_keyed(kernel.node.type)
    return (
        definition.is_pure
        and not kernel.call.is_users  # It may keep what it is given, of which no definition tells.
        and definition.aliases is not None
        and not definition.aliases
    )


def fits(kernel: Kernel, value: int, specs: Specs) -> bool:
    """Whether a kernel's one result surely has the layout of an input, and is large."""
    (shape,) = kernel.node.shapes
    return (
        shape.size is not None
        and shape.size >= _LARGE
        and specs.of(value) == (kernel.node.dtypes[0], shape)
    )
