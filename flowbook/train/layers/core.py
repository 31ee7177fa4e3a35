"""Dense layers, embeddings, dropout, flattening."""

from __future__ import annotations

import math
from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.dtypes import float32
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity
from flowbook.graph.ops.basis.shaping import reshape
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.linalg.matrix_products import matmul
from flowbook.graph.ops.linalg.tensordot import tensordot
from flowbook.graph.ops.math.comparison import where
from flowbook.graph.ops.nn import regularization
from flowbook.graph.ops.nn.embedding import embedding_lookup
from flowbook.train.layers import initializers
from flowbook.train.layers.initializers import Initializer
from flowbook.train.layers.regularizers import Regularizer
from flowbook.train.layers.weights import (
    Activation,
    KernelAndBias,
    activated,
    channels_of,
    check_activation,
    check_training,
    layer_input,
    or_default,
    positive,
    weights,
)

__all__ = ["dense", "dropout", "embedding", "flatten"]


@composed
def dense(
    inputs: Any,
    units: int,
    activation: Activation | None = None,
    use_bias: bool = True,
    name: str | None = None,
    **variables: Any,
) -> Tensor:
    """A dense layer: `activation(inputs kernel + bias)`.

    Args:
        inputs: [..., width], of a floating-point dtype.
        units: how many outputs there are.
        activation: a function of a tensor.
        use_bias: whether there is a bias.
        variables: `kernel_initializer` (by default Glorot's uniform), `bias_initializer` (by
            default zeros), `kernel_regularizer`, `bias_regularizer` (see `regularization_loss`),
            `trainable` (by default True); `kernel` [width, units] and `bias` [units], to share
            variables instead of making `name/kernel` and `name/bias`.

    Returns:
        [..., units].

    Raises:
        InvalidArgumentError: if the width is not known, or a shared variable does not fit.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [None, 784])
    >>> hidden = fb.layers.dense(x, 100, activation=fb.nn.relu)
    >>> [v.op.name for v in fb.get_default_graph().variables()]
    ['dense/kernel', 'dense/bias']
    """
    check_activation(activation)
    inputs = layer_input(inputs, "dense")
    units = positive("units", units)
    made = KernelAndBias(use_bias, **variables)
    kernel = made.kernel([channels_of(inputs), units], inputs.dtype)
    product = matmul(inputs, kernel) if len(inputs.shape) == 2 else tensordot(inputs, kernel, 1)
    return activated(made.with_bias(product, units), activation)


@composed
def embedding(
    ids: Any,
    rows: int,
    width: int,
    initializer: Initializer | None = None,
    regularizer: Regularizer | None = None,
    trainable: bool = True,
    dtype: Any = float32,
    table: Any = None,
    name: str | None = None,
) -> Tensor:
    """A row of a trained table for each id. Only the rows that a step uses are read and updated.

    Args:
        ids: int32 or int64, of any shape, from 0 to `rows - 1`.
        rows: how many rows the table has.
        width: how long they are.
        initializer: what the table starts with; by default uniform in [-0.05, 0.05).
        regularizer: a penalty on the table (see `regularization_loss`).
        trainable: whether optimizers update the table by default.
        dtype: the table's floating-point dtype.
        table: [rows, width], to share a variable instead of making `name/table`.

    Returns:
        The shape of `ids`, then `width`.
    """
    ids = convert_to_tensor(ids)
    table = weights(
        "table",
        [positive("rows", rows), positive("width", width)],
        dtype if table is None else table.dtype,
        or_default(initializer, initializers.random_uniform(-0.05, 0.05)),
        table,
        regularizer,
        trainable,
    )
    return embedding_lookup(table, ids)


@composed
def dropout(
    inputs: Any,
    rate: Any = 0.5,
    training: Any = False,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Drop a part of the values while training, and scale up the others; else do nothing.

    Args:
        inputs: of a floating-point dtype.
        rate: the probability that a value is dropped, in [0, 1).
        training: a bool, or a bool tensor that decides in the run.
        noise_shape: as for `fb.nn.dropout`.
        seed: the operation's seed.

    Source: Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting",
    2014.
    """
    check_training(training)
    inputs = convert_to_tensor(inputs)
    if not isinstance(training, Arithmetic):
        if not training:
            return identity(inputs)
        return regularization.dropout(inputs, rate=rate, noise_shape=noise_shape, seed=seed)
    dropped = regularization.dropout(inputs, rate=rate, noise_shape=noise_shape, seed=seed)
    return where(convert_to_tensor(training, bool_), dropped, inputs)


@composed
def flatten(inputs: Any, name: str | None = None) -> Tensor:
    """All dimensions but the first as one.

    Args:
        inputs: [batch, ...].

    Returns:
        [batch, the product of the others].
    """
    inputs = convert_to_tensor(inputs)
    dims = inputs.shape.dims
    if dims == ():
        raise InvalidArgumentError(f"flatten is applied to [batch, ...], not to {inputs!r}")
    if dims is None or any(d is None for d in dims[1:]):
        return reshape(inputs, [shape_of(inputs)[0], -1])
    batch = -1 if dims[0] is None else dims[0]
    if batch == -1 and 0 in dims[1:]:
        return reshape(inputs, [shape_of(inputs)[0], 0])
    return reshape(inputs, [batch, math.prod(d or 0 for d in dims[1:])])
