"""Steps taken block by block give the bits that whole arrays give."""

from __future__ import annotations

import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.graph.definition.expression import Expression
from flowbook.graph.model.registry import op_definitions
from flowbook.graph.numerics import blocks
from flowbook.graph.numerics.blocks import Blocks

EXPRESSIONS = {
    name: op_def.expression
    for name, op_def in op_definitions().items()
    if op_def.expression is not None and op_def.expression.has_steps and op_def.is_builtin
} | {
    "operators": Expression("-x * (y + 3) - 2.5 / (x >= y)", ["x", "y"]),
    "again": Expression("square(exp(x) - y) * exp(x)", ["x", "y"]),
    "numbers": Expression("maximum(minimum(x, -0.0), -2) + maximum(1, y)", ["x", "y"]),
    "choices": Expression("where(x > y, where(isnan(x), 0, x), where(y > 0, y, 1))", ["x", "y"]),
    "bits": Expression("invert(bitwise_and(x, y)) ^ x", ["x", "y"]),
    "outputs": Expression("exp(x) + y, exp(x), exp(x) * exp(x)", ["x", "y"]),
}
DTYPES = [*"efdFD?bBhil", ml_dtypes.bfloat16]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1e30, -1e30, 1.0, -1.0, 6.0, -88.5]
BLOCK = 192


@np.errstate(all="ignore")
def array(seed: int, dtype: Any, size: int) -> Any:
    random = np.random.default_rng(seed)
    values = random.standard_normal(size) * random.choice([0.1, 3, 60])
    places = random.random(size) < 0.2
    values[places] = random.choice(SPECIAL, places.sum())
    if np.dtype(dtype).kind not in "fcV":
        values = np.nan_to_num(values).clip(-100, 100)
    if np.dtype(dtype).kind == "c":
        return (values + 1j * random.permutation(values)).astype(dtype)
    return values.astype(dtype)


@np.errstate(all="ignore")
def whole(expression: Expression, values: list[Any]) -> list[Any]:
    """The outputs as Python evaluates them."""
    names = {name: name for name in expression.parameters}
    names |= {name: f"np.{name}" for name in expression.functions}
    found = eval(
        expression.render(names), {"np": np} | dict(zip(expression.parameters, values, strict=True))
    )
    return list(found) if isinstance(found, tuple) else [found]


@np.errstate(all="ignore")
def in_blocks(expression: Expression, values: list[Any]) -> list[Any] | None:
    steps = list(expression._steps.values())
    return Blocks(expression.parameters, steps, expression._outputs).evaluate(values)


@given(
    name=st.sampled_from(list(EXPRESSIONS)),
    dtype=st.sampled_from(DTYPES),
    size=st.sampled_from([64, 65, 127, 191, 192, 193, 255, 256, 257, 384, 385, 448, 577, 1600]),
    seed=st.integers(0, 1000),
    scalar=st.sampled_from([None, 0, 1]),
    offset=st.integers(0, 3),
)
def test_the_bits_are_those_of_whole_arrays(
    name: str, dtype: Any, size: int, seed: int, scalar: int | None, offset: int
) -> None:
    expression = EXPRESSIONS[name]
    values = []
    for place, parameter in enumerate(expression.parameters):
        if parameter == "alpha":
            values.append(0.2)
        elif place == scalar and len(expression.parameters) > 1:
            values.append(array(seed + place, dtype, 1).reshape(()))
        else:
            values.append(array(seed + place, dtype, size + offset)[offset:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", BLOCK)
        try:
            wanted = whole(expression, values)
        except TypeError:
            assume(False)  # There is no such function of this dtype.
        found = in_blocks(expression, values)
    if found is None:
        assert wanted[0].dtype.hasobject or scalar is not None
        return
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()
        assert not any(np.may_share_memory(one, value) for value in values)


@pytest.mark.parametrize("size", [blocks.BLOCK - 1, blocks.BLOCK, 2 * blocks.BLOCK + 1])
def test_blocks_of_the_real_size(size: int) -> None:
    expression = EXPRESSIONS["Softplus"]
    x = array(0, np.float32, size)
    (found,) = in_blocks(expression, [x]) or [None]
    assert found.tobytes() == whole(expression, [x])[0].tobytes()


def test_shapes_stay() -> None:
    x = array(0, np.float32, 24).reshape(2, 3, 4)
    (found,) = in_blocks(EXPRESSIONS["Sigmoid"], [x]) or [None]
    assert found.shape == (2, 3, 4)
    (found,) = in_blocks(EXPRESSIONS["Sigmoid"], [np.zeros((0, 3), np.float32)]) or [None]
    assert found.shape == (0, 3)


@pytest.mark.parametrize(
    "values",
    [
        [np.zeros((4, 6)).T, np.zeros((6, 4))],
        [np.zeros(8)[::2], np.zeros(4)],
        [np.zeros((4, 6)), np.zeros(6)],
        [np.zeros((4, 6)), np.zeros((4, 1))],
        [np.float32(1), np.float32(2)],
        [np.array([1, "a"], object)] * 2,
    ],
)
def test_what_cannot_be_cut_alike_is_left_alone(values: list[Any]) -> None:
    try:
        assert in_blocks(EXPRESSIONS["operators"], values) is None
    except TypeError:
        assert values[0].dtype.hasobject  # Strings have no such functions, wherever they are.


def test_what_is_overwritten_is_not_needed_again() -> None:
    """Each output of each order of steps is what it is alone."""
    x, y = (array(seed, np.float64, 500) for seed in range(2))
    for text in (
        "exp(x) * y, exp(x), exp(x) - exp(x) * y",
        "exp(x), exp(x) + y, square(y) * exp(x)",
        "exp(x), square(exp(x)), square(square(exp(x)) + y)",
        "sqrt(square(x) + y) + square(x), square(x) + y",
    ):
        expression = Expression(text, ["x", "y"])
        found = in_blocks(expression, [x, y]) or []
        for one, other in zip(found, whole(expression, [x, y]), strict=True):
            assert one.tobytes() == other.tobytes()


@np.errstate(all="ignore")
def test_what_lies_between_is_of_a_blocks_size() -> None:
    kernel = EXPRESSIONS["Softplus"].kernel()
    x = array(0, np.float32, 8 * blocks.BLOCK)
    kernel(np, x)
    tracemalloc.start()
    kernel(np, x)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1.5 * x.nbytes


@pytest.mark.parametrize("size", [100, 300_000])
def test_both_executors_agree(size: int) -> None:
    x = fb.placeholder(fb.float32, [None])
    y = fb.nn.gelu(x, approximate=True)
    fetches = [y, fb.gradients(y, [x])[0], fb.nn.selu(x), fb.nn.swish(x), fb.div_no_nan(x, y)]
    value = array(3, np.float32, size)
    with fb.Session() as sess:
        first, second = sess.run(fetches, {x: value}), sess.run(fetches, {x: value})
        alone = [sess.run(y, {x: value}) for _ in range(2)]
    for one, other in zip([*first, *alone], [*second, first[0], first[0]], strict=True):
        assert one.tobytes() == other.tobytes()


def test_other_array_modules_get_whole_arrays() -> None:
    class Module:
        def __getattr__(self, name: str) -> Any:
            return lambda *args: (name, *args)

    kernel = EXPRESSIONS["Softsign"].kernel()
    x = np.zeros(blocks.BLOCK)
    assert kernel(Module(), x)[0] == "divide"
