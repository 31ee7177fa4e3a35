"""A row's operation, built and held against its reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flowbook.graph.building.graph import Graph
from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import constant, placeholder
from tests.interpreter import evaluate
from tests.op_cases import Case
from tests.op_cases.case import argument_tokens, converted, natural, variable_token


def as_list(outputs: Any) -> list[Tensor]:
    return list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def built(
    case: Case,
    inputs: Any,
    shape_of: Callable[[np.ndarray], Any] = np.shape,
    dtype: DType | None = None,
    fix: bool = True,
) -> tuple[list[Tensor], dict[Tensor, np.ndarray]]:
    """The row's outputs in a graph of its own, and the feeds of its inputs."""
    values = converted(case, inputs, dtype or natural(case))
    feeds = {}
    tensors = []
    with Graph().as_default():
        for k, value in enumerate(values):
            if fix and k in case.fixed:
                tensors.append(constant(value))
                continue
            tensor = placeholder(dtypes.as_dtype(value.dtype), shape_of(value), name=f"input{k}")
            feeds[tensor] = value
            tensors.append(tensor)
        return as_list(case.build(*tensors)), feeds


@cache
def specimen(case: Case) -> tuple[list[Tensor], dict[Tensor, np.ndarray], list[Any]]:
    """A row as it stands: its outputs, the feeds of its inputs, and the outputs' values.

    It is made once, for all checks that add nothing to its graph.
    """
    outputs, feeds = built(case, case.inputs)
    return outputs, feeds, evaluate(outputs, feeds)


def each(cases: Iterable[Case]) -> Callable[[Callable[[Case], None]], Callable[..., None]]:
    """Make tests of a check of a row: for each operation type one, of all its rows."""
    by_type: dict[str, list[Case]] = {}
    for case in cases:
        by_type.setdefault(case.type, []).append(case)

    def decorate(check: Callable[[Case], None]) -> Callable[..., None]:
        @pytest.mark.parametrize("type", by_type)
        def test(type: str) -> None:
            for case in by_type[type]:
                with about(case.name):
                    check(case)

        return test

    return decorate


@contextmanager
def about(what: object) -> Iterator[None]:
    """Have what fails inside say which of several things that a test tries it is about."""
    try:
        yield
    except Exception as failure:
        failure.add_note(f"about {what}")
        raise


def equal(value: Any, wanted: Any) -> None:
    """Hold that an array equals another, NaN itself too.

    Most have the same bits, which is seen a hundred times sooner than NumPy says so.
    """
    value, wanted = np.asarray(value), np.asarray(wanted)
    is_alike = (value.dtype, value.shape) == (wanted.dtype, wanted.shape)
    if not (is_alike and value.tobytes() == wanted.tobytes()):
        np.testing.assert_array_equal(value, wanted)


def compared(case: Case, inputs: Any, dtype: DType | None = None) -> None:
    """Compare the kernel's values with the reference's."""
    outputs, feeds = built(case, inputs, dtype=dtype)
    results = evaluate(outputs, feeds)
    values = converted(case, inputs, dtype or natural(case))
    with np.errstate(all="ignore"):
        chosen = [t == variable_token(case) for t in argument_tokens(case)]
        exact = [
            v.astype(np.float64) if c and v.dtype.kind in "fiubV" else v
            for c, v in zip(chosen, values, strict=True)
        ]
        expected = case.reference(*exact)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(results) == len(expected)
    for output, result, wanted in zip(outputs, results, expected, strict=True):
        assert isinstance(result, np.ndarray | np.generic)
        assert result.dtype == output.dtype.numpy
        agree(result, np.asarray(wanted), case.tolerance, values)


def agree(result: Any, wanted: np.ndarray, tolerance: float, values: list[np.ndarray]) -> None:
    assert result.shape == wanted.shape
    if result.dtype.kind in "OS":
        assert result.tolist() == wanted.tolist()
        return
    values = [v for v in (*values, result) if v.dtype.kind in "fcV"]
    if result.dtype.kind == "V":
        result = result.astype(np.float64)
    if result.dtype.kind in "iub":
        if wanted.dtype.kind in "fc":
            wanted = wanted.real.astype(np.int64)
        np.testing.assert_array_equal(result, wanted.astype(result.dtype))
        return
    epsilon = max(float(ml_dtypes.finfo(v.dtype).eps) for v in values)
    np.testing.assert_allclose(
        result, wanted, rtol=4 * tolerance * epsilon, atol=4 * tolerance * epsilon
    )
