"""Functions with a gradient of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.control_flow.structure import leaves, packed_like
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import own_definitions
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor

__all__ = ["custom_gradient"]


def _shapes_of_results(values: list[Tensor], Tout: tuple[Any, ...], **_: Any) -> list[Shape]:
    return [tensor.shape for tensor in values[: len(Tout)]]


def _own_gradient(op: Operation, *dys: Tensor | None) -> list[Any]:
    results = len(op.outputs)
    found = op.attributes["grad"](*[dy for dy in dys if dy is not None])
    given = list(found) if isinstance(found, list | tuple) else [found]
    arguments = len(op.inputs) - results
    if len(given) != arguments:
        raise InvalidArgumentError(
            f"the function's gradient gives {counted(len(given), 'value')}, and the function takes "
            f"{arguments}",
            op,
            hint="one for each argument, None where there is none",
        )
    return [None] * results + given


with own_definitions():
    own_gradient_op: OpDef[list[Tensor]] = OpDef(
        "OwnGradient",
        "values: *Tin -> results: *Tout",
        attributes={"grad": REQUIRED, "Tin": REQUIRED, "Tout": REQUIRED},
        infer=_shapes_of_results,
        kernel=lambda xp, *values, Tout: values[: len(Tout)],
        grad=_own_gradient,
        aliases=None,
        only_moves=True,
    )


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function a gradient of its own, as a decorator.

    Args:
        function: takes tensors, and gives its result, a tensor or a nested structure of them, and
            a function: that takes the gradient of each tensor of the result, and gives one for
            each argument, or None where there is none.

    Returns:
        A function of the same arguments that gives the result. Nothing flows to what else it uses,
        such as variables.

    Raises:
        InvalidTypeError: on calling, if the function gives no such pair.
        InvalidArgumentError: from `gradients`, if the numbers of gradients and arguments differ.

    >>> import flowbook as fb
    >>> @fb.custom_gradient
    ... def log1pexp(x):
    ...     e = fb.exp(x)
    ...     return fb.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    >>> x = fb.constant(100.0)
    >>> with fb.Session() as sess:
    ...     print(*sess.run(fb.gradients(log1pexp(x), [x])))
    1.0
    """

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        with name_scope(getattr(function, "__name__", "custom_gradient").strip("<>_") or None):
            given = [convert_to_tensor(arg) for arg in args]
            pair = function(*given)
            if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]):
                raise InvalidTypeError(
                    "a function with a gradient of its own gives its result and a function, "
                    f"not {pair!r:.80}",
                    hint="return result, lambda dy: ...",
                )
            result, grad = pair
            results = [convert_to_tensor(leaf) for leaf in leaves(result)]
            found = own_gradient_op(
                [*results, *given],
                grad=grad,
                Tin=tuple([t.dtype for t in (*results, *given)]),
                Tout=tuple([t.dtype for t in results]),
            )
        return packed_like(result, found)

    return call
