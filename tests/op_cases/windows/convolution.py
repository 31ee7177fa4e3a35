"""Convolutions, depthwise ones too, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.model.dtypes import FLOATS
from flowbook.graph.ops.basis.joining import stack
from flowbook.graph.ops.windows import convolution, depthwise
from tests import naive_windows as naive
from tests.op_cases.case import Array, Case, i


def some(*dims: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *dims]).uniform(-2, 2, dims).round(2)


def how(strides: Any, padding: Any, dilations: Any = None) -> dict[str, Any]:
    return {"strides": strides, "padding": padding, "dilations": dilations or (1,) * len(strides)}


def full(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes as TensorFlow takes them."""
    padding = attributes["padding"]
    return {
        "strides": [1, *attributes["strides"], 1],
        "padding": padding if isinstance(padding, str) else [[0, 0], *map(list, padding), [0, 0]],
        "dilations": [1, *attributes["dilations"], 1],
    }


def explicit(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes as TensorFlow's raw operations take them."""
    given = full(attributes)
    if not isinstance(given["padding"], str):
        given["explicit_paddings"] = [n for pair in given["padding"] for n in pair]
        given["padding"] = "EXPLICIT"
    return given


def conv_rows(
    note: str,
    x: Array,
    w: Array,
    attributes: dict[str, Any],
    in_tensorflow: bool = True,
    special: Any = None,
) -> Any:
    """A convolution, and its two gradients."""
    args = tuple(attributes.values())
    dy = some(*naive.convolution(x, w, *args).shape, seed=1)
    # Without dilation alone TensorFlow's CPU has gradients.
    has_gradients = in_tensorflow and set(attributes["dilations"]) == {1}

    def recorded(function: Any, applies: bool) -> Any:
        return function if applies and x.ndim == 4 else None

    yield Case(
        "Convolution",
        lambda x, w: convolution.conv_op(x, w, **attributes),
        [x, w],
        lambda x, w: naive.convolution(x, w, *args),
        [0, 1],
        empty=[x[:0], w],
        special=special,
        tolerance=8,
        tensorflow=recorded(lambda tf, x, w: tf.nn.conv2d(x, w, **full(attributes)), in_tensorflow),
        note=note,
    )
    yield Case(
        "ConvolutionBackpropInput",
        lambda s, w, dy: convolution.input_gradient_op(s, w, dy, **attributes),
        [i(*x.shape), w, dy],
        lambda s, w, dy: naive.input_gradient(s, w, dy, *args),
        [1, 2],
        fixed=[0],
        empty=[i(0, *x.shape[1:]), w, dy[:0]],
        tolerance=8,
        tensorflow=recorded(
            lambda tf, s, w, dy: tf.raw_ops.Conv2DBackpropInput(
                input_sizes=s, filter=w, out_backprop=dy, **explicit(attributes)
            ),
            has_gradients,
        ),
        note=note,
    )
    yield Case(
        "ConvolutionBackpropFilter",
        lambda x, s, dy: convolution.filter_gradient_op(x, s, dy, **attributes),
        [x, i(*w.shape), dy],
        lambda x, s, dy: naive.filter_gradient(x, s, dy, *args),
        [0, 2],
        fixed=[1],
        empty=[x[:0], i(*w.shape), dy[:0]],
        tolerance=8,
        tensorflow=recorded(
            lambda tf, x, s, dy: tf.raw_ops.Conv2DBackpropFilter(
                input=x, filter_sizes=s, out_backprop=dy, **explicit(attributes)
            ),
            has_gradients,
        ),
        note=note,
    )


def depthwise_rows(note: str, x: Array, w: Array, attributes: dict[str, Any]) -> Any:
    """A depthwise convolution, and its two gradients."""
    args = tuple(attributes.values())
    dy = some(*naive.depthwise(x, w, *args).shape, seed=1)

    def recorded(function: Any) -> Any:
        # TensorFlow's CPU has equal strides only, and no dilation.
        has = len(set(attributes["strides"])) == 1 and set(attributes["dilations"]) == {1}
        return function if has else None

    yield Case(
        "DepthwiseConvolution",
        lambda x, w: depthwise.depthwise_op(x, w, **attributes),
        [x, w],
        lambda x, w: naive.depthwise(x, w, *args),
        [0, 1],
        empty=[x[:0], w],
        tolerance=8,
        tensorflow=recorded(
            lambda tf, x, w: tf.raw_ops.DepthwiseConv2dNative(
                input=x, filter=w, **explicit(attributes)
            )
        ),
        note=note,
    )
    yield Case(
        "DepthwiseConvolutionBackpropInput",
        lambda s, w, dy: depthwise.input_gradient_op(s, w, dy, **attributes),
        [i(*x.shape), w, dy],
        lambda s, w, dy: naive.depthwise_input_gradient(s, w, dy, *args),
        [1, 2],
        fixed=[0],
        empty=[i(0, *x.shape[1:]), w, dy[:0]],
        tolerance=8,
        tensorflow=recorded(
            lambda tf, s, w, dy: tf.raw_ops.DepthwiseConv2dNativeBackpropInput(
                input_sizes=s, filter=w, out_backprop=dy, **explicit(attributes)
            )
        ),
        note=note,
    )
    yield Case(
        "DepthwiseConvolutionBackpropFilter",
        lambda x, s, dy: depthwise.filter_gradient_op(x, s, dy, **attributes),
        [x, i(*w.shape), dy],
        lambda x, s, dy: naive.depthwise_filter_gradient(x, s, dy, *args),
        [0, 2],
        fixed=[1],
        empty=[x[:0], i(*w.shape), dy[:0]],
        tolerance=8,
        tensorflow=recorded(
            lambda tf, x, s, dy: tf.raw_ops.DepthwiseConv2dNativeBackpropFilter(
                input=x, filter_sizes=s, out_backprop=dy, **explicit(attributes)
            )
        ),
        note=note,
    )


IMAGES, FILTERS = some(2, 4, 5, 2), some(3, 2, 2, 3)
POISONED = IMAGES.copy()
POISONED[0, 1, 2, 0], POISONED[1, 3, 4, 1] = np.nan, np.inf

CASES = [
    *conv_rows("same", IMAGES, FILTERS, how((1, 1), "SAME"), special=[POISONED, FILTERS]),
    *conv_rows("valid", IMAGES, FILTERS, how((1, 1), "VALID")),
    *conv_rows("same-strides", IMAGES, FILTERS, how((2, 3), "SAME")),
    *conv_rows("valid-strides", IMAGES, FILTERS, how((1, 2), "VALID")),
    *conv_rows("explicit", IMAGES, FILTERS, how((2, 1), ((1, 2), (0, 1)))),
    *conv_rows("dilated", IMAGES, some(2, 2, 2, 2), how((1, 1), "SAME", (2, 3))),
    *conv_rows(
        "all", IMAGES, some(2, 2, 2, 2), how((2, 2), ((0, 1), (2, 0)), (3, 2)), in_tensorflow=False
    ),
    *conv_rows("pointwise", IMAGES, some(1, 1, 2, 3), how((1, 1), "VALID")),
    *conv_rows("pointwise-strides", IMAGES, some(1, 1, 2, 3), how((2, 2), "SAME")),
    *conv_rows("no-channels", some(1, 3, 3, 0), some(2, 2, 0, 2), how((1, 1), "VALID"), False),
    *conv_rows("one-dimension", some(2, 6, 2), some(3, 2, 2), how((2,), "SAME")),
    *conv_rows("volumes", some(1, 3, 2, 3, 1), some(2, 2, 2, 1, 2), how((1, 2, 1), "SAME")),
    # Composed: it goes under the type of a last stack.
    Case(
        "Stack",
        lambda x, w: stack([convolution.atrous_conv2d_transpose(x, w, [2, 8, 9, 3], 2, "VALID")]),
        [some(2, 6, 5, 2), some(2, 3, 3, 2)],
        lambda x, w: naive.input_gradient(
            np.array([2, 8, 9, 3]), w, x, *how((1, 1), "VALID", (2, 2)).values()
        )[None],
        [0, 1],
        only=FLOATS,
        tolerance=8,
        tensorflow=lambda tf, x, w: tf.stack(
            [
                tf.compat.v1.nn.atrous_conv2d_transpose(
                    tf.constant(x), tf.constant(w), [2, 8, 9, 3], 2, "VALID"
                )
            ]
        ),
        note="atrous_conv2d_transpose",
    ),
    Case(
        "Stack",
        lambda x, w: stack([convolution.conv2d(x, w, [1, 1, 2, 1], "SAME", "NCHW")]),
        [IMAGES.transpose(0, 3, 1, 2), FILTERS],
        lambda x, w: naive.convolution(
            x.transpose(0, 2, 3, 1), w, (2, 1), "SAME", (1, 1)
        ).transpose(0, 3, 1, 2)[None],
        [0, 1],
        only=FLOATS,
        tolerance=8,
        note="conv2d-channels-first",
    ),
    *depthwise_rows("same", IMAGES, some(3, 2, 2, 1), how((1, 1), "SAME")),
    *depthwise_rows("multiplied", IMAGES, some(2, 2, 2, 3), how((2, 2), "VALID")),
    *depthwise_rows("explicit", IMAGES, some(2, 2, 2, 2), how((1, 1), ((1, 0), (2, 1)))),
    *depthwise_rows("dilated", IMAGES, some(2, 2, 2, 2), how((1, 2), "SAME", (2, 1))),
]
