"""How a signature was written: the key under which a session remembers it.

It is found without taking fetches and feeds apart, so that a run which is known costs one look-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.state.variables import Variable

_LEAVES = (Tensor, Operation, Variable, str, SparseTensor, IndexedSlices)

# What tells spellings apart that have the same parts.
_LIST, _TUPLE, _FED = object(), object(), object()


def spelling(fetches: Any, feeds: Mapping[Any, Any] | None) -> Any:
    """The key under which a signature is remembered as it was written.

    A list and a tuple of the same fetches differ; a namedtuple, which equals the tuple of its
    fields, is not the key of anything.
    """
    kind = type(fetches)
    if kind is list:
        return (_LIST, *fetches, _FED, *feeds) if feeds else (_LIST, *fetches)
    if kind is tuple:
        return (_TUPLE, *fetches, _FED, *feeds) if feeds else (_TUPLE, *fetches)
    return (_FED, fetches, *feeds) if feeds else fetches


def is_lasting(fetches: Any, feeds: Mapping[Any, Any] | None) -> bool:
    """Whether a spelling means the same whenever it comes again: nothing in it can change."""
    items = fetches if type(fetches) in (list, tuple) else (fetches,)
    return all(isinstance(item, _LEAVES) for item in (*items, *(feeds or ())))
