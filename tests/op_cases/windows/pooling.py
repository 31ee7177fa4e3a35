"""Pools and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.ops.basis.joining import stack
from flowbook.graph.ops.windows import fractional_pooling, pooling
from tests import naive_windows as naive
from tests.op_cases.case import Array, Case, i


def how(ksize: Any, strides: Any, padding: Any, dilations: Any = None) -> dict[str, Any]:
    return {
        "ksize": ksize,
        "strides": strides,
        "padding": padding,
        "dilations": dilations or (1,) * len(ksize),
    }


def distinct(*dims: int) -> Array:
    """Values that are further apart than numeric gradients' steps, and small integers."""
    return np.random.default_rng(dims).permutation(np.arange(np.prod(dims)) / 4.0 - 3).reshape(dims)


def pool_rows(note: str, x: Array, attributes: dict[str, Any], special: Any = None) -> Any:
    """Both pools and their gradients."""
    args = tuple(attributes.values())
    y, _ = naive.max_pool(x, *args)
    # Quarters are exact in single precision, in which TensorFlow computes some of this.
    dy = np.random.default_rng(1).integers(-8, 8, y.shape) / 4
    nothing = x[:0]

    def recorded(function: Any) -> Any:
        # TensorFlow passes over NaN, and has gradients for windows in the plane only.
        has = x.ndim == 4 and special is None and set(attributes["dilations"]) == {1}
        has &= attributes["ksize"][-1] == 1 and isinstance(attributes["padding"], str)
        return function if has else None

    given = {k: list(v) if k != "padding" else v for k, v in attributes.items()}
    given.pop("dilations")
    yield Case(
        "MaxPool",
        lambda x: pooling.max_pool_op(x, **attributes),
        [x],
        lambda x: naive.max_pool(x, *args)[0],
        [0],
        empty=[nothing],
        special=special,
        tensorflow=recorded(lambda tf, x: tf.raw_ops.MaxPool(input=x, **given)),
        note=note,
    )
    yield Case(
        "MaxPoolGrad",
        lambda x, dy: pooling.max_pool_gradient(
            x, pooling.max_pool_op(x, **attributes), dy, **attributes
        ),
        [x, dy],
        lambda x, dy: naive.max_pool_gradient(x, dy, *args),
        [0, 1],
        empty=[nothing, dy[:0]],
        special=None if special is None else [*special, dy],
        tensorflow=recorded(
            lambda tf, x, dy: tf.raw_ops.MaxPoolGrad(
                orig_input=x, orig_output=tf.raw_ops.MaxPool(input=x, **given), grad=dy, **given
            )
        ),
        note=note,
    )
    yield Case(
        "MaxPoolGradGrad",
        lambda x, values: pooling.max_pool_choice(
            x, pooling.max_pool_op(x, **attributes), values, **attributes
        ),
        [x, x[::-1] * 2],
        lambda x, values: values.ravel()[naive.max_pool(x, *args)[1]],
        [1],
        empty=[nothing, nothing],
        tensorflow=recorded(
            lambda tf, x, values: tf.raw_ops.MaxPoolGradGrad(
                orig_input=x, orig_output=tf.raw_ops.MaxPool(input=x, **given), grad=values, **given
            )
        ),
        note=note,
    )
    yield Case(
        "AvgPool",
        lambda x: pooling.avg_pool_op(x, **attributes),
        [x],
        lambda x: naive.avg_pool(x, *args),
        [0],
        empty=[nothing],
        special=special,
        tolerance=8,
        tensorflow=recorded(lambda tf, x: tf.raw_ops.AvgPool(value=x, **given)),
        note=note,
    )
    yield Case(
        "AvgPoolGrad",
        lambda s, dy: pooling.avg_pool_gradient(s, dy, **attributes),
        [i(*x.shape), dy],
        lambda s, dy: naive.avg_pool_gradient(s, dy, *args),
        [1],
        fixed=[0],
        empty=[i(0, *x.shape[1:]), dy[:0]],
        tolerance=8,
        tensorflow=recorded(
            lambda tf, s, dy: tf.raw_ops.AvgPoolGrad(orig_input_shape=s, grad=dy, **given)
        ),
        note=note,
    )


def argmax_row(note: str, x: Array, attributes: dict[str, Any], batch: bool = False) -> Case:
    args = tuple(attributes.values())

    def reference(x: Array) -> Any:
        values, index = naive.max_pool(x, *args)
        return values, index if batch else index % max(x[:1].size, 1)

    given = {k: v for k, v in attributes.items() if k != "dilations"}
    return Case(
        "MaxPoolWithArgmax",
        lambda x: pooling.max_pool_with_argmax_op(x, **attributes, include_batch_in_index=batch),
        [x],
        reference,
        [0],
        empty=[x[:0]],
        tensorflow=lambda tf, x: tf.nn.max_pool_with_argmax(
            x, **given, include_batch_in_index=batch
        ),
        note=note,
    )


IMAGES = distinct(2, 4, 5, 2)
POISONED = IMAGES.copy()
POISONED[0, 1, 2, 0], POISONED[1, 0, 0, 1], POISONED[1, 3, 4, 1] = np.nan, np.inf, -np.inf
TWO, THREE = (1, 2, 2, 1), (1, 3, 3, 1)
FIRST = (1, 2, 3, 1), (1, 2, 1, 1), "VALID", (1, 1, 1, 1)

ROWS, COLUMNS = np.array([0, 2, 3, 5]), np.array([0, 1, 4, 6])


def _fractional(x: Array, rows: Array, columns: Array, overlapping: bool) -> tuple[Array, Array]:
    """Window by window, from the first row and in it from the first column on."""
    output = np.zeros((len(x), len(rows) - 1, len(columns) - 1, x.shape[3]), x.dtype)
    where = np.zeros(output.shape, np.int64)
    for b, p, q, c in np.ndindex(output.shape):
        inside = [
            (b, y, z, c)
            for y in range(rows[p], min(rows[p + 1] + overlapping, x.shape[1]))
            for z in range(columns[q], min(columns[q + 1] + overlapping, x.shape[2]))
        ]
        best = max(inside, key=lambda place: x[place])
        output[b, p, q, c], where[b, p, q, c] = x[best], np.ravel_multi_index(best, x.shape)
    return output, where


CASES = [
    *pool_rows("halves", IMAGES, how(TWO, TWO, "VALID")),
    *pool_rows("same", IMAGES, how(TWO, TWO, "SAME")),
    *pool_rows("nan", IMAGES, how(TWO, (1, 1, 1, 1), "VALID"), special=[POISONED]),
    *pool_rows("overlapping", IMAGES, how(THREE, (1, 2, 1, 1), "SAME")),
    *pool_rows("gaps", IMAGES, how((1, 1, 2, 1), (1, 2, 3, 1), "VALID")),
    *pool_rows("explicit", IMAGES, how(THREE, TWO, ((0, 0), (2, 1), (0, 2), (0, 0)))),
    *pool_rows("dilated", IMAGES, how(TWO, (1, 1, 1, 1), "VALID", (1, 2, 3, 1))),
    *pool_rows("nothing-moves", IMAGES, how((1, 1, 1, 1), (1, 1, 1, 1), "SAME")),
    *pool_rows("one-dimension", distinct(2, 6, 2), how((1, 3, 1), (1, 2, 1), "SAME")),
    *pool_rows("volumes", distinct(1, 3, 2, 3, 2), how((1, 2, 2, 2, 1), (1, 1, 2, 1, 1), "SAME")),
    *pool_rows("channels", distinct(2, 2, 2, 4), how((1, 1, 1, 2), (1, 1, 1, 2), "VALID")),
    # Composed: they go under the type of a last stack.
    *(
        Case(
            "Stack",
            lambda x, built=built: stack([built(x, [1, 1, 2, 3], [1, 1, 2, 1], "VALID", "NCHW")]),
            [IMAGES.transpose(0, 3, 1, 2)],
            lambda x, reference=reference: reference(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)[
                None
            ],
            [0],
            only=FLOATS,
            tolerance=8,
            note=f"{built.__name__}-channels-first",
        )
        for built, reference in (
            (pooling.max_pool, lambda x: naive.max_pool(x, *FIRST)[0]),
            (pooling.avg_pool, lambda x: naive.avg_pool(x, *FIRST)),
        )
    ),
    argmax_row("same", IMAGES, how(TWO, TWO, "SAME")),
    argmax_row("batch", IMAGES, how(THREE, (1, 1, 2, 1), "VALID"), batch=True),
    *(
        Case(
            "FractionalMaxPool",
            lambda x, r, c, overlapping=overlapping: fractional_pooling.max_pool_op(
                x, r, c, overlapping=overlapping
            ),
            [x, ROWS, COLUMNS],
            lambda x, r, c, overlapping=overlapping: _fractional(x, r, c, overlapping),
            # Of equal maxima a numeric gradient sees all.
            [0] if note == "distinct" else [],
            fixed=[1, 2],
            empty=[x[:0], ROWS, COLUMNS],
            note=f"{note}{'-overlapping' * overlapping}",
        )
        for note, x in (("distinct", distinct(2, 5, 6, 2)), ("equal", np.ones((1, 5, 6, 1))))
        for overlapping in (False, True)
    ),
]
