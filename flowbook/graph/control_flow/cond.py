"""Branches: `cond`, of which one side runs (white paper, section 4.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flowbook.graph.building.graph import Graph
from flowbook.graph.building.scopes import control_dependencies
from flowbook.graph.control_flow.calling import require_callable_with
from flowbook.graph.control_flow.flows import BranchInside
from flowbook.graph.control_flow.routing import merge, switch_op
from flowbook.graph.control_flow.structure import packed_like, paths, require_same
from flowbook.graph.definition.composed import composed
from flowbook.graph.model import dtypes
from flowbook.graph.model.context import Branch
from flowbook.graph.model.errors import ConstantConditionWarning, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity

__all__ = ["cond"]


@dataclass
class Side:
    """What one branch gave.

    Attributes:
        name: what errors call it.
        inside: where it was built.
        pivot: what is there if it is taken.
        result: what its function gave.
        values: its leaves as tensors; the pivot where it gave none.
    """

    name: str
    inside: BranchInside
    pivot: Tensor
    result: Any = None
    values: list[Tensor] = field(default_factory=list)


@composed
def cond(
    pred: Any,
    true_fn: Callable[[], Any],
    false_fn: Callable[[], Any],
    name: str | None = None,
) -> Any:
    """Run one of two branches, as a bool says in the run.

    What a branch's function builds runs only where the branch is taken, and what acts (writes,
    draws, prints) runs there whether or not the result depends on it. What it uses from outside is
    computed in any case.

    Args:
        pred: a bool scalar. It can be fed.
        true_fn: a function without arguments that builds the branch for true, and gives a tensor,
            an operation, None, or a nested structure of tensors.
        false_fn: likewise for false; a structure of the same kind, with the same dtypes.

    Returns:
        What the taken branch gives, in the same structure; an operation where the branches give
        operations or None.

    Raises:
        InvalidTypeError: if the branches differ in structure or dtype, or one is no function.
        InvalidArgumentError: if they give other numbers of values, or `pred` is no scalar.

    Warns:
        ConstantConditionWarning: if `pred` is a Python bool, or a constant: one branch never runs.

    Source: white paper, section 4.4.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [])
    >>> y = fb.cond(x > 0, lambda: fb.log(x), lambda: fb.zeros([]))
    >>> with fb.Session() as sess:
    ...     print(sess.run(y, {x: 1.0}), sess.run(y, {x: -1.0}))
    0.0 0.0
    """
    for what, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise InvalidTypeError(
                f"{what} is a function that builds the branch, not {function!r:.80}",
                hint=f"{what}=lambda: ...; to choose elementwise between tensors: fb.where",
            )
        require_callable_with(
            function,
            (),
            f"{what} cannot be called without arguments",
            hint="what a branch needs from outside it uses by its name",
        )
    predicate = identity(as_predicate(pred, "cond", _NEVER), name="pred_id")
    with predicate.graph.as_default():
        return branches(predicate, true_fn, false_fn)


def branches(
    predicate: Tensor,
    true_fn: Callable[[], Any],
    false_fn: Callable[[], Any],
    names: tuple[str, str] = ("true_fn", "false_fn"),
) -> Any:
    """What the branches of a predicate of their own give; errors call them by their names."""
    graph = predicate.graph
    graph.places.open_branches(predicate)
    pivots: tuple[Tensor, Tensor] = switch_op(predicate, predicate, name="Pivot")
    true = _built(graph, names[0], predicate, 1, pivots[1], true_fn)
    false = _built(graph, names[1], predicate, 0, pivots[0], false_fn)
    _check(true, false)
    flow = graph.scope.flow
    ends = [_ends(side, all_of_them=flow is not None) for side in (false, true)]
    merged = [merge(list(values))[0] for values in zip(*ends, strict=True)]
    if flow is not None and (true.inside.stateful or false.inside.stateful):
        is_acting = bool(true.inside.acting or false.inside.acting)
        flow.note(merged[0].op, is_acting)
    graph.places.close_branches(predicate)
    if true.result is None or isinstance(true.result, Operation):
        return merged[0].op
    return packed_like(true.result, merged)


_NEVER = ("only false_fn will ever run", "only true_fn will ever run")


def as_predicate(pred: Any, what: str, never: tuple[str, str]) -> Tensor:
    """A bool tensor for a predicate, with a warning if it is a constant.

    Args:
        pred: a tensor, or what becomes one.
        what: the public function that was given it, and calls this one.
        never: what follows from the constants False and True.

    Raises:
        InvalidTypeError: if it is no bool.
    """
    tensor = convert_to_tensor(pred, dtypes.bool) if isinstance(pred, bool | np.bool_) else None
    if tensor is None:
        tensor = convert_to_tensor(pred, name="pred")
    if tensor.dtype is not dtypes.bool:
        raise InvalidTypeError(
            f"the predicate is {tensor.dtype.name}, not bool",
            hint="compare it with something, as in fb.cond(x > 0, ...)",
        )
    value = tensor.op.attributes["value"] if tensor.op.op_def.is_constant else None
    if value is not None and not value.shape:
        sites.warn(
            f"{what}: the predicate is the constant {bool(value)}, so that {never[bool(value)]}, "
            "unless it is fed",
            ConstantConditionWarning,
        )
    return tensor


def _built(
    graph: Graph,
    name: str,
    predicate: Tensor,
    number: int,
    pivot: Tensor,
    function: Callable[[], Any],
) -> Side:
    branch = Branch(predicate, number, predicate.op.context)
    # Beside the Switch itself, which is alive in any case, this is what can be waited for.
    pivot = identity(pivot, name="true" if number else "false")
    inside = BranchInside(graph, branch, pivot.op)
    side = Side(name, inside, pivot)
    with inside.entered():
        side.result = function()
        side.values = [_leaf(side, leaf, where) for where, leaf in paths(side.result)]
    return side


def _leaf(side: Side, leaf: Any, where: str) -> Tensor:
    """A leaf of what a branch gave as a tensor."""
    if leaf is None or isinstance(leaf, Operation):
        if where:
            raise InvalidTypeError(
                f"{side.name} gives {'nothing' if leaf is None else f'the operation {leaf.name!r}'}"
                f" at {where}, where a tensor is wanted",
            )
        with control_dependencies([] if leaf is None else [leaf]):
            return identity(side.pivot)
    return convert_to_tensor(leaf)


def _check(true: Side, false: Side) -> None:
    has_none = [s.result is None or isinstance(s.result, Operation) for s in (true, false)]
    if all(has_none):
        return
    if any(has_none):
        nothing, something = (true, false) if has_none[0] else (false, true)
        raise InvalidTypeError(
            f"{something.name} gives a value, but {nothing.name} gives none",
            hint="both have to give the same structure",
        )
    require_same(true.result, false.result, true.name, false.name)
    for (where, _), one, other in zip(paths(true.result), true.values, false.values, strict=True):
        if one.dtype is not other.dtype:
            place = f" at {where}" if where else ""
            raise InvalidTypeError(
                f"{true.name} gives {one.dtype.name}{place}, but {false.name} {other.dtype.name}",
                hint="convert one of them by fb.cast",
            )


def _ends(side: Side, all_of_them: bool) -> Sequence[Tensor]:
    """What a branch gives on, which is there only if it is taken, and has acted."""
    inside = side.inside
    waited = inside.stateful if all_of_them else inside.acting
    values = side.values or [side.pivot]
    with inside.entered(), control_dependencies(waited):
        if waited:
            return [identity(value) if value.dtype in dtypes.MOVABLE else value for value in values]
        return [inside.held(value) for value in values]
