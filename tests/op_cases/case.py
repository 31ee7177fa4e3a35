"""What a row says, and values that many rows are tried on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.registry import op_named

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Case:
    """How to try an operation type.

    Attributes:
        type: the operation type.
        build: builds the operation from tensors, one per input.
        inputs: an array for each; those of the signature's type variables are converted to each
            dtype in turn.
        reference: what the outputs are, computed from the inputs in float64.
        differentiable: the inputs with a gradient.
        fixed: the inputs that decide shapes, constants unless a check is about unknown ones.
        empty: inputs without elements; None where the type has no such.
        special: inputs with NaN and infinities, in float64.
        only: the dtypes to try, where not all that the signature admits have a meaning.
        twice: whether there is a second gradient.
        tolerance: a factor on the error that is allowed for a dtype.
        by_value: whether the outputs' shapes depend on what inputs that are not fixed hold.
        tensorflow: the same in TensorFlow: called with the module and an array for each input, it
            gives what the outputs must be. The values are recorded by `tests.record_tensorflow`.
        note: tells rows of one type apart.
    """

    type: str
    build: Callable[..., Any]
    inputs: Sequence[Any]
    reference: Callable[..., Any]
    differentiable: Sequence[int] = ()
    fixed: Sequence[int] = ()
    empty: Sequence[Any] | None = None
    special: Sequence[Any] | None = None
    only: Sequence[DType] | None = None
    twice: bool = True
    tolerance: float = 1.0
    by_value: bool = False
    tensorflow: Callable[..., Any] | None = None
    note: str = ""

    @property
    def name(self) -> str:
        """The test's name."""
        return f"{self.type}-{self.note}" if self.note else self.type


@dataclass(frozen=True)
class Scenario:
    """A check of an operation type that a row of values cannot express."""

    type: str
    where: str = field(metadata={"about": "the test that performs it"})


def f(*values: Any) -> Array:
    """Float64 values; the tests convert them."""
    return np.array(values if len(values) > 1 else values[0], dtype=np.float64)


def i(*values: Any) -> Array:
    """Indices."""
    return np.array(values if len(values) > 1 else values[0], dtype=np.int32)


SOME = f([[0.5, -1.5, 2.0], [3.0, -0.25, 1.25]])
OTHER = f([[1.5, 2.0, -1.0], [0.75, 3.0, -2.5]])
ROW = f([2.0, -3.0, 0.5])
POSITIVE = f([[0.5, 1.5, 2.0], [3.0, 0.25, 1.25]])
ODD = f([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0])
NONE = np.zeros((0, 3))
CUBE = np.arange(24.0).reshape(2, 3, 4)
TRUTH = np.array([[True, False, True], [False, False, True]])


def unary(
    op: Any,
    reference: Callable[..., Any],
    inputs: Array = SOME,
    *,
    smooth: bool = True,
    special: Array | None = ODD,
    type: str | None = None,
    **options: Any,
) -> Case:
    """An elementwise function of one argument."""
    return Case(
        type or op.type,
        op,
        [inputs],
        reference,
        differentiable=[0] if smooth else [],
        empty=[NONE],
        special=None if special is None else [special],
        **options,
    )


def binary(
    op: Any,
    reference: Callable[..., Any],
    x: Array = SOME,
    y: Array = ROW,
    *,
    smooth: bool = True,
    build: Any = None,
    special: Any = (ODD[:, None], ODD),
    **options: Any,
) -> Case:
    """An elementwise function of two arguments that broadcast."""
    return Case(
        op.type,
        build or op,
        [x, y],
        reference,
        differentiable=[0, 1] if smooth else [],
        empty=[NONE, y],
        special=special,
        **options,
    )


# The dtypes that a row is tried in


@cache
def argument_tokens(case: Case) -> list[str]:
    """For each of a row's inputs the type variable or dtype in the signature."""
    arguments = op_named(case.type).inputs
    tokens = [a.token for a in arguments]
    # The last list takes what there is more.
    for place in [k for k, a in enumerate(arguments) if a.is_list][-1:]:
        tokens[place:place] = [arguments[place].token] * (len(case.inputs) - len(arguments))
    return tokens[: len(case.inputs)]


@cache
def variable_token(case: Case) -> str | None:
    """The type variable that a row is tried for: the one admitting most dtypes."""
    variables = op_named(case.type).type_variables
    named = [t for t in argument_tokens(case) if t in variables]
    return max(named, key=lambda t: len({*variables[t]} - {*dtypes.SMALL}), default=None)


@cache
def admitted(case: Case) -> list[DType | None]:
    token = variable_token(case)
    if case.only is not None:
        return list(case.only)
    if token is None:
        return [None]
    # Nothing but moves takes the small ones: tests/graph/model/test_small_dtypes.py.
    return [t for t in op_named(case.type).type_variables[token] if t not in dtypes.SMALL]


def natural(case: Case) -> DType | None:
    """The dtype that a row's checks of shapes and values are made in."""
    known = admitted(case)
    preferred = (dtypes.float64, dtypes.complex128, dtypes.int64, dtypes.bool)
    return next((t for t in preferred if t in known), known[0])


def converted(case: Case, inputs: Any, dtype: DType | None) -> list[np.ndarray]:
    """A row's inputs, those of its type variable in `dtype`."""
    token = variable_token(case)
    return [
        in_dtype(np.asarray(value), dtype)
        if t == token and dtype is not None
        else np.asarray(value)
        for value, t in zip(inputs, argument_tokens(case), strict=True)
    ]


def in_dtype(value: np.ndarray, dtype: DType) -> np.ndarray:
    if dtype is dtypes.string:
        text = np.empty(value.shape, object)
        for place, item in np.ndenumerate(value):
            text[place] = str(item).encode()
        return text
    if dtype.is_integer:
        rounded = np.round(value.real)
        value = np.abs(rounded) if dtype.numpy.kind == "u" else rounded
    return value.astype(dtype.numpy)
