"""Tensors that wait: for each other, or for what is named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flowbook.graph.building.scopes import control_dependencies
from flowbook.graph.control_flow.structure import leaves, mapped
from flowbook.graph.definition.composed import composed
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.ops.basis.constants import convert_to_tensor, group, identity

__all__ = ["tuple", "with_dependencies"]


@composed
def with_dependencies(dependencies: Iterable[Any], output: Any, name: str | None = None) -> Any:
    """The same tensor, once all of some operations have run.

    Args:
        dependencies: a list of operations, tensors or variables.
        output: a tensor, or a nested structure of them.

    Returns:
        The same structure.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [])
    >>> root = fb.control_flow.with_dependencies([fb.assert_non_negative(x)], fb.sqrt(x))
    """
    tensors = mapped(convert_to_tensor, output)
    with control_dependencies(dependencies):
        return mapped(identity, tensors)


@composed
def tuple(
    tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] = ()
) -> list[Any]:
    """The same tensors, none of which is there before all of them are.

    Args:
        tensors: a list of tensors, `IndexedSlices` and the like; None stays None.
        control_inputs: operations that they wait for, too.

    Raises:
        InvalidTypeError: if it is no list of them.
        InvalidArgumentError: if there is no tensor in it.

    >>> import flowbook as fb
    >>> x = fb.Variable([1.0, 2.0])
    >>> doubled, total = fb.tuple([2 * x, fb.reduce_sum(x)])
    """
    if not isinstance(tensors, Sequence):
        raise InvalidTypeError(f"a list of tensors is wanted, not {tensors!r:.80}")
    there = [mapped(convert_to_tensor, item) for item in tensors if item is not None]
    if not there:
        raise InvalidArgumentError("there is no tensor that could wait for another")
    done = group(leaves(there), *control_inputs)
    waiting = iter(with_dependencies([done], there))
    return [None if item is None else next(waiting) for item in tensors]
