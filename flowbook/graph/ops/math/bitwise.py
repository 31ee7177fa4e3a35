"""Operations on the bits of integers, elementwise, with NumPy's broadcasting."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.batching import Batching
from flowbook.graph.definition.inference import broadcast_inputs, elementwise, same_as_input
from flowbook.graph.definition.op_def import NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import INTS
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.math.comparison import and_op, not_op, or_op, xor_op

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "population_count",
    "right_shift",
]


def _of_integers(op_def: OpDef, *values: Any, name: str | None) -> Tensor:
    given = next((v.dtype for v in values if isinstance(v, Arithmetic)), None)  # type: ignore[attr-defined]
    tensors = [convert_to_tensor(value, given) for value in values]
    for tensor in tensors:
        if not tensor.dtype.is_integer:
            raise InvalidTypeError(
                f"{tensor.name} is {tensor.dtype.name}, and bits are those of integers",
                hint="for bool tensors there are logical_and, logical_or, logical_xor and "
                "logical_not",
            )
    return op_def(*tensors, name=name)


def bitwise_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits that are set in both of two integer tensors, elementwise; `x & y` is the same."""
    return _of_integers(and_op, x, y, name=name)


def bitwise_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits that are set in one of two integer tensors, elementwise; `x | y` is the same."""
    return _of_integers(or_op, x, y, name=name)


def bitwise_xor(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The bits that differ between two integer tensors, elementwise; `x ^ y` is the same."""
    return _of_integers(xor_op, x, y, name=name)


def invert(x: Any, name: str | None = None) -> Tensor:
    """All bits of an integer tensor turned around, elementwise; `~x` is the same."""
    return _of_integers(not_op, x, name=name)


def _shift(type: str, ufunc: str, doc: str) -> OpDef:
    return OpDef(
        type,
        "x: T, y: T -> z: T",
        T=INTS,
        infer=broadcast_inputs,
        expression=f"{ufunc}(x, y)",
        grad=NO_GRADIENT,
        cost=elementwise(),
        doc=doc,
    )


left_shift = _shift(
    "LeftShift",
    "left_shift",
    """The bits of `x` moved up by `y` places, elementwise with broadcasting; also `x << y`.

    Moved by as many places as `x` has bits, or by a negative number, nothing is left: 0, as in
    NumPy. TensorFlow moves by all places but one then, or by none.
    """,
)

right_shift = _shift(
    "RightShift",
    "right_shift",
    """The bits of `x` moved down by `y` places, elementwise with broadcasting; also `x >> y`.

    Negative numbers stay negative: it is a division by `2 ** y`, rounded down. Moved by as many
    places as `x` has bits, or by a negative number, nothing is left: 0, or -1 of negative numbers,
    as in NumPy. TensorFlow moves by all places but one then, or by none.
    """,
)


def _population_count(xp: Any, x: Any) -> Any:
    # Of a negative number NumPy counts the bits of its absolute value.
    return xp.bitwise_count(x.view(f"u{x.dtype.itemsize}"))


population_count = OpDef(
    "PopulationCount",
    "x: T -> y: uint8",
    T=INTS,
    infer=same_as_input,
    kernel=_population_count,
    batching=Batching.ELEMENTWISE,
    cost=elementwise(),
    doc="""How many bits are set, elementwise; in negative numbers too, as two's complement.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.population_count([0, 7, -1])))
    [ 0  3 32]
    """,
)
