"""Branches and loops as TensorFlow's graphs have them: they are operations here too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from flowbook.graph.building.scopes import within
from flowbook.graph.control_flow.routing import (
    control_trigger,
    enter_op,
    exit,
    loop_cond,
    merge_op,
    next_iteration_op,
    switch_op,
)
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import identity, no_op
from flowbook.tensorflow.node import Everywhere, Node, Reference, Rules, named, value_of


def _passed(n: Node, item: Any) -> Any:
    """What goes along: an operation on references takes these, another one what they stand for."""
    is_kept = isinstance(item, Reference) and (item.is_resource or n.type.startswith("Ref"))
    return item if is_kept else value_of(item)


class _Handle(NamedTuple):
    """A variable's handle, to go along as it is: what takes tensors takes its value as a rule."""

    tensor: Tensor

    def as_tensor(self, handle: bool) -> Tensor:
        """The handle, whatever is wanted."""
        return self.tensor


def _along(n: Node, data: Any, route: Callable[[Any], Any]) -> Any:
    """A value, or a variable's handle, taken along a route; what is everywhere stays."""
    data = _passed(n, data)
    if isinstance(data, Everywhere):
        return data
    if isinstance(data, Reference):
        return replace(data, handle=route(_Handle(data.handle)), written=None)
    return route(data)


def _switch(n: Node, data: Any, pred: Any) -> Any:
    data = _passed(n, data)
    if isinstance(data, Everywhere):
        return [data, data]
    if not isinstance(data, Reference):
        return switch_op(data, value_of(pred), name=n.scope)
    sides: tuple[Tensor, Tensor] = switch_op(_Handle(data.handle), value_of(pred), name=n.scope)
    return [replace(data, handle=side, written=None) for side in sides]


def _merge(n: Node, *inputs: Any) -> Any:
    return merge_op([value_of(i) for i in inputs], name=n.scope)


def _enter(n: Node, data: Any) -> Any:
    options: dict[str, Any] = {
        "frame_name": n.text("frame_name"),
        "is_constant": n.flag("is_constant"),
        "parallel_iterations": n.whole("parallel_iterations", 10),
        "shape": n.shape_of_loop,
    }
    return _along(n, data, lambda t: enter_op(t, **options, name=n.scope))


def _exit(n: Node, data: Any) -> Any:
    return _along(n, data, lambda t: exit(t, name=n.scope))


def _next_iteration(n: Node, data: Any) -> Any:
    if n.closes is None:
        raise UnimplementedError(f"{n} leads to no Merge")
    merge = n.closes.op
    with within(merge.graph, lambda scope: scope._replace(closes=merge)):
        return next_iteration_op(value_of(data), name=n.scope)


def _identity(n: Node, data: Any, name: str | None) -> Any:
    if isinstance(data, Everywhere) or (_passed(n, data) is data and isinstance(data, Reference)):
        return data
    if isinstance(data, Reference) and data.written is None:
        return data.value(name)
    return identity(value_of(data), name=name)


def _identities(n: Node, *inputs: Any) -> Any:
    first, *others = inputs
    return [_identity(n, first, n.scope), *(_identity(n, each, None) for each in others)]


RULES: Rules = {
    **dict.fromkeys(("Switch", "RefSwitch"), _switch),
    **dict.fromkeys(("Merge", "RefMerge"), _merge),
    **dict.fromkeys(("Enter", "RefEnter"), _enter),
    **dict.fromkeys(("Exit", "RefExit"), _exit),
    **dict.fromkeys(("NextIteration", "RefNextIteration"), _next_iteration),
    **dict.fromkeys(("Identity", "RefIdentity"), lambda n, data: _identity(n, data, n.scope)),
    "ControlTrigger": named(control_trigger),
    "IdentityN": _identities,
    "LoopCond": named(loop_cond),
    "NoOp": named(no_op),
}
