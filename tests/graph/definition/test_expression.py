"""Expressions: what code is made of them, and which take steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.definition.expression import Expression


def steps(text: str, *attributes: str) -> list[tuple[str, tuple[str, ...]]]:
    expression = Expression(text, ["x", "y"], attributes)
    return [(step.function, step.arguments) for step in expression._steps.values()]


def test_equal_parts_are_one_step() -> None:
    assert steps("exp(x) / (1 + exp(x))") == [
        ("exp", ("x",)),
        ("add", ("1", "exp(x)")),
        ("divide", ("exp(x)", "1 + exp(x)")),
    ]


def test_numbers_are_computed_once() -> None:
    assert steps("x * (2 / 4) - -3") == [
        ("multiply", ("x", "0.5")),
        ("subtract", ("x * (2 / 4)", "-3")),
    ]


def test_attributes_stand_for_numbers() -> None:
    assert steps("exp(x * alpha)", "alpha")[0] == ("multiply", ("x", "alpha"))


@pytest.mark.parametrize(
    "text",
    [
        "sinc(x) + y",  # a function of Python's
        "exp(x) @ exp(y)",
        "matmul(exp(x), y)",
        "exp(x) ** 2",  # which NumPy squares
        "exp(x, out=y)",
        "sum(exp(x))",
        "exp(x)[::2] * 2",
        "0 < exp(x) < 1",
        "x * (alpha * 2)",  # in float64, if NumPy multiplied
        "x * sqrt(2)",
        "exp(x) * 1e999",  # which is not written as a number
    ],
)
def test_what_is_not_known_to_be_elementwise_has_no_steps(text: str) -> None:
    expression = Expression(text, ["x", "y"], ["alpha"])
    assert not expression.has_steps


def test_one_function_is_no_step_to_save() -> None:
    assert not Expression("logaddexp(x, 0)", ["x"]).has_steps


def test_large_inputs_are_left_to_the_kernel() -> None:
    expression = Expression("exp(x * alpha) + y", ["x", "y"], ["alpha"])
    names = {"x": "v1", "y": "v2", "alpha": "a0", "exp": "xp_exp"}
    assert expression.render(names, "k7") == (
        "(xp_exp(v1 * a0) + v2) if v1.size < 131072 and v2.size < 131072 else k7(xp, v1, v2, a0)"
    )


def test_outputs_that_are_not_wanted_are_none() -> None:
    expression = Expression("exp(x) * y, exp(x), y - 1", ["x", "y"])
    for size in (5, 200_000):
        x, y = np.ones(size), np.full(size, 2.0)
        wanted = [np.exp(x) * y, np.exp(x), y - 1]
        for ports in ([0, 1, 2], [1], [0, 2]):
            found = expression.kernel(ports)(np, x, y)
            for port, (one, other) in enumerate(zip(found, wanted, strict=True)):
                if port in ports:
                    np.testing.assert_array_equal(one, other)
                else:
                    assert one is None


@pytest.mark.parametrize("text", ["exp(x), sinc(x)", "exp(x), x", "exp(x), exp(x)"])
def test_several_outputs_are_steps_of_their_own(text: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"has several outputs, and .* in it"):
        Expression(text, ["x"])


def test_a_users_operation_with_several_outputs() -> None:
    both = fb.OpDef(
        "SinhCosh",
        "x: T -> sinh: T, cosh: T",
        T=fb.FLOATS,
        infer=lambda x: [x.shape] * 2,
        expression="(exp(x) - exp(-x)) / 2, (exp(x) + exp(-x)) / 2",
    )
    x = fb.placeholder(fb.float32, [None])
    s, c = both(x)
    for size in (3, 200_000):
        value = np.linspace(-1, 1, size, dtype=np.float32)
        with fb.Session() as sess:
            for _ in range(2):
                for fetches, wanted in (([s, c], [np.sinh, np.cosh]), ([c], [np.cosh])):
                    for one, function in zip(sess.run(fetches, {x: value}), wanted, strict=True):
                        np.testing.assert_allclose(one, function(value), atol=1e-6)


def test_float16_is_computed_in_float32() -> None:
    """Of x = -9.7 the sigmoid is 6.1e-5, and exp(-x) would leave float16 a little further on."""
    x = fb.placeholder(fb.float16, [None])
    value = np.linspace(-16, 12, 500).astype(np.float16)
    single: Any = value.astype(np.float32)
    power = np.exp(-2 * np.sqrt(2 / np.pi) * (single + 0.044715 * single**3))
    with fb.Session() as sess, np.errstate(over="ignore"):
        for y, wanted in (
            (fb.sigmoid(x), 1 / (1 + np.exp(-single))),
            (fb.nn.gelu(x, approximate=True), single / (1 + power)),
            (fb.nn.softplus(x), np.log1p(np.exp(single))),
        ):
            for _ in range(2):
                found = sess.run(y, {x: value})
                assert found.dtype == np.float16
                np.testing.assert_allclose(found, wanted.astype(np.float16), rtol=1e-3, atol=6e-8)


OPERATORS = {
    "add": "a + b",
    "subtract": "a - b",
    "multiply": "a * b",
    "divide": "a / b",
    "floor_divide": "a // b",
    "remainder": "a % b",
    "bitwise_and": "a & b",
    "bitwise_or": "a | b",
    "bitwise_xor": "a ^ b",
    "left_shift": "a << b",
    "right_shift": "a >> b",
    "less": "a < b",
    "less_equal": "a <= b",
    "greater": "a > b",
    "greater_equal": "a >= b",
    "equal": "a == b",
    "not_equal": "a != b",
    "negative": "-a",
    "positive": "+a",
    "invert": "~a",
}


def of_scalars(name: str) -> Expression:
    inputs = ["x", "y"][: getattr(np, name).nin]
    return Expression(f"{name}({', '.join(inputs)})", inputs)


@pytest.mark.parametrize("name", OPERATORS)
def test_functions_of_scalars_are_operators(name: str) -> None:
    names = {"x": "a", "y": "b", name: f"xp_{name}"}
    assert of_scalars(name).render_for_scalars(names) == OPERATORS[name]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("multiply(add(x, y), x)", "(a + b) * a"),
        ("less(equal(x, y), x)", "(a == b) < a"),
        ("exp(negative(x))", "exp(-a)"),
        ("x - y * 2", "a - b * 2"),
    ],
)
def test_operators_stand_in_parentheses_where_they_must(text: str, expected: str) -> None:
    names = {"x": "a", "y": "b", "exp": "exp"}
    names |= {name: name for name in OPERATORS}
    assert Expression(text, ["x", "y"]).render_for_scalars(names) == expected


def extremes(dtype: np.dtype[Any]) -> list[Any]:
    """Numbers of a dtype among which operators could differ from functions."""
    if dtype.kind == "b":
        numbers: list[Any] = [False, True]
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        numbers = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 7, 31, 32, 63, 64]
        numbers += [-1, -2, -7, -64] if dtype.kind == "i" else []
    else:
        limits = np.finfo(dtype)
        numbers = [0.0, -0.0, 1.0, -1.0, 2.5, -7.3, 0.1, np.inf, -np.inf, np.nan]
        numbers += [limits.max, limits.tiny, limits.smallest_subnormal]
    return [dtype.type(number) for number in numbers]


@pytest.mark.parametrize("code", "?bBhHiIlLqQefd")
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_mean_the_same_of_scalars(name: str, code: str) -> None:
    function: Any = getattr(np, name)
    numbers = extremes(np.dtype(code))
    text = of_scalars(name).render_for_scalars({"x": "x", "y": "y", name: name})
    operator = eval(f"lambda x, y: {text}")
    for x in numbers:
        for y in numbers:
            with np.errstate(all="ignore"):
                try:
                    wanted = function(*(x, y)[: function.nin])
                except TypeError:
                    with pytest.raises(TypeError):
                        operator(x, y)
                    continue
                found = operator(x, y)
            assert (type(found), found.tobytes()) == (type(wanted), wanted.tobytes()), (x, y)
