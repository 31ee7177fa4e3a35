"""Attention: averages of values, weighted by how well keys fit a query."""

from __future__ import annotations

import math
from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.dtypes import float16, int32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity
from flowbook.graph.ops.basis.filling import range as range_of
from flowbook.graph.ops.basis.indexing import strided_slice
from flowbook.graph.ops.basis.permuting import transpose
from flowbook.graph.ops.basis.shaping import expand_dims, reshape, shape
from flowbook.graph.ops.linalg.matrix_products import matmul
from flowbook.graph.ops.math.arithmetic import multiply
from flowbook.graph.ops.math.comparison import greater, greater_equal, logical_and, where
from flowbook.graph.ops.math.elementwise import rsqrt
from flowbook.graph.ops.nn.activations import bias_add, softmax

__all__ = ["multi_head_attention", "scaled_dot_product_attention"]


@composed("attention")
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    scale: Any = None,
    is_causal: bool = False,
    name: str | None = None,
) -> Tensor:
    """`softmax(query key^T * scale) value`: for each query a weighted average of the values.

    Args:
        query: [..., n, d] of a floating-point dtype.
        key: [..., m, d] of the same dtype; dimensions before the last two broadcast.
        value: [..., m, v] of the same dtype.
        mask: of a shape that broadcasts to [..., n, m]: bool, True where a query may look at a key;
            or of the query's dtype, added to the scaled products, -inf where it may not.
        scale: a number or a scalar tensor; by default `1 / sqrt(d)`.
        is_causal: let a query look at no later key. The last query and the last key are at the same
            place: with n = m, query i looks at the keys up to i.

    Returns:
        [..., n, v]. A query that may look at nothing gets zeros.

    Source: Vaswani et al., "Attention Is All You Need", 2017.

    >>> import flowbook as fb
    >>> x = fb.ones([8, 10, 64])
    >>> fb.nn.scaled_dot_product_attention(x, x, x, is_causal=True).shape
    Shape([8, 10, 64])
    """
    query = convert_to_tensor(query)
    key, value = convert_to_tensor(key, query.dtype), convert_to_tensor(value, query.dtype)
    if not query.dtype.is_floating:
        raise InvalidTypeError(f"attention takes floating-point tensors, not {query.dtype}")
    mask = _as_mask(mask, query)
    if scale is None:
        scale = _inverse_root_of_width(query)
    # The queries are fewer than the products that would be scaled in their place.
    scores = matmul(multiply(query, scale), key, transpose_b=True)
    bias, allowed = _biases(mask)
    if is_causal:
        earlier = _causal(scores)
        allowed = earlier if allowed is None else logical_and(allowed, earlier)
    if bias is not None:
        scores = scores + bias
    if allowed is None:
        return matmul(softmax(scores), value, name=name)
    # Not -inf: in a row without anything else that would make NaN of it.
    lowest = -6e4 if scores.dtype is float16 else -3e38
    weights = softmax(where(allowed, scores, lowest))
    return matmul(where(allowed, weights, 0.0), value, name=name)


def _inverse_root_of_width(query: Tensor) -> Any:
    width = query.shape.dims[-1] if query.shape.dims else None
    if width is not None:
        return 1 / math.sqrt(max(width, 1))
    return rsqrt(cast(strided_slice(shape(query), -1), query.dtype))


def _as_mask(mask: Any, query: Tensor) -> Tensor | None:
    if mask is None:
        return None
    found = convert_to_tensor(mask)
    if found.dtype not in (bool_, query.dtype):
        raise InvalidTypeError(
            f"a mask is bool or {query.dtype.name}, as the query, not {found.dtype.name}"
        )
    return found


def _biases(mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """What a mask adds to the scores, and where it allows to look."""
    if mask is None or mask.dtype is bool_:
        return None, mask
    allowed = greater(mask, float("-inf"))
    return where(allowed, mask, 0.0), allowed


def _causal(scores: Tensor) -> Tensor:
    """Bool [n, m]: whether a key is not later than a query, counted from the last of both."""
    dims = scores.shape.dims[-2:] if scores.shape.dims else (None, None)
    n, m = (
        d if d is not None else strided_slice(shape(scores), axis)
        for d, axis in zip(dims, (-2, -1), strict=True)
    )
    rows, columns = range_of(0, n, dtype=int32), range_of(0, m, dtype=int32)
    return greater_equal(expand_dims(rows, 1) + (m - n), columns)


@composed
def multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    num_heads: int,
    query_kernel: Any,
    key_kernel: Any,
    value_kernel: Any,
    output_kernel: Any,
    query_bias: Any = None,
    key_bias: Any = None,
    value_bias: Any = None,
    output_bias: Any = None,
    mask: Any = None,
    is_causal: bool = False,
    name: str | None = None,
) -> Tensor:
    """Several attentions side by side, each on projections of its own.

    Args:
        query: [batch, n, width] of a floating-point dtype.
        key: [batch, m, key width] of the same dtype; the query again for self-attention.
        value: [batch, m, value width] of the same dtype.
        num_heads: how many attentions.
        query_kernel: [width, num_heads * d].
        key_kernel: [key width, num_heads * d].
        value_kernel: [value width, num_heads * v].
        output_kernel: [num_heads * v, outputs].
        query_bias: [num_heads * d], or None; the others likewise.
        key_bias: [num_heads * d], or None.
        value_bias: [num_heads * v], or None.
        output_bias: [outputs], or None.
        mask: as for `scaled_dot_product_attention`, broadcast to [batch, num_heads, n, m]: one of
            shape [batch, 1, 1, m] hides the padding of each example's keys.
        is_causal: as there.

    Returns:
        [batch, n, outputs].

    Raises:
        InvalidArgumentError: if the kernels' columns do not divide into the heads.

    Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2.
    """
    if isinstance(num_heads, Arithmetic) or not hasattr(num_heads, "__index__"):
        raise InvalidTypeError(f"num_heads is an int, not {num_heads!r}")
    if num_heads < 1:
        raise InvalidArgumentError(f"num_heads is at least 1, not {num_heads}")
    inputs = [convert_to_tensor(x) for x in (query, key, value)]
    kernels = [convert_to_tensor(k) for k in (query_kernel, key_kernel, value_kernel)]
    for what, x, kernel in zip(("query", "key", "value"), inputs, kernels, strict=True):
        x.shape.with_rank(3)
        columns = kernel.shape.with_rank(2).dims[1]  # type: ignore[index]
        if columns is not None and columns % num_heads:
            raise InvalidArgumentError(
                f"the {columns} columns of the {what} kernel do not divide into {num_heads} heads"
            )
    biases = (query_bias, key_bias, value_bias)
    queries, keys, values = (
        _heads(_projected(x, kernel, bias), int(num_heads))
        for x, kernel, bias in zip(inputs, kernels, biases, strict=True)
    )
    seen = scaled_dot_product_attention(queries, keys, values, mask, is_causal=is_causal)
    together = transpose(seen, [0, 2, 1, 3])
    batch, steps, _, _ = _dims(together)
    columns = kernels[2].shape.dims[1]  # type: ignore[index]
    joined = reshape(together, [batch, steps, -1 if columns is None else columns])
    return identity(_projected(joined, output_kernel, output_bias), name=name)


def _dims(tensor: Tensor) -> list[Any]:
    """A tensor's dimensions: ints where known, else scalar tensors."""
    dims = tensor.shape.dims or (None,) * 4
    return [strided_slice(shape(tensor), i) if d is None else d for i, d in enumerate(dims)]


def _projected(x: Tensor, kernel: Any, bias: Any) -> Tensor:
    """[batch, steps, width] times a kernel, as one product of matrices."""
    batch, steps, width = _dims(x)[:3]
    kernel = convert_to_tensor(kernel)
    product = matmul(reshape(x, [-1, width]), kernel)
    if bias is not None:
        product = bias_add(product, bias)
    return reshape(product, [batch, steps, _dims(kernel)[1]])


def _heads(x: Tensor, count: int) -> Tensor:
    """[batch, steps, count * width] as [batch, count, steps, width]."""
    batch, steps, columns = _dims(x)
    width = columns // count
    return transpose(reshape(x, [batch, steps, count, width]), [0, 2, 1, 3])
