"""Sparse tensors: three tensors here are one, and what takes or gives one takes or gives three."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowbook import nn, sets, sparse
from flowbook.graph.model.dtypes import int64
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.filling import fill
from flowbook.graph.ops.basis.shaping import reshape, shape
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.linalg.matrix_products import matmul
from flowbook.graph.ops.sparse.arranging import sparse_reshape
from flowbook.graph.ops.text.edit_distance import edit_distance
from flowbook.graph.ops.text.string_patterns import split
from flowbook.tensorflow.node import Node, Rule, Rules, named
from flowbook.tensorflow.operators.linalg import TRANSPOSED


def _made(indices: Any, values: Any, dense_shape: Any) -> SparseTensor:
    return SparseTensor(cast(indices, int64), values, cast(dense_shape, int64))


def _parts(found: SparseTensor) -> list[Any]:
    return [found.indices, found.values, found.dense_shape]


def _columns(found: Sequence[SparseTensor]) -> list[Any]:
    """The indices of several, then their values, then their shapes."""
    return [part for column in zip(*map(_parts, found), strict=True) for part in column]


def _of_sparse(
    function: Callable[..., Any], count: int = 1, **attributes: Callable[[Node], Any]
) -> Rule:
    """The rule of what takes so many sparse tensors before all else."""
    rule = named(function, **attributes)

    def of_parts(n: Node, *inputs: Any) -> Any:
        found = [_made(*inputs[i : i + 3]) for i in range(0, 3 * count, 3)]
        return rule(n, *found, *inputs[3 * count :])

    return of_parts


def _giving(rule: Rule) -> Rule:
    """The rule of what gives a sparse tensor."""
    return lambda n, *inputs: _parts(rule(n, *inputs))


def _to_dense(n: Node, indices: Any, dense_shape: Any, values: Any, default: Any) -> Any:
    if indices.shape.rank is None:
        raise UnimplementedError(f"{n} is read only if the rank of its indices is known")
    if indices.shape.rank < 2:
        indices = reshape(indices, [-1, 1])
    if values.shape.rank == 0:
        values = fill(shape(indices)[:1], values)
    found = _made(indices, values, dense_shape)
    checked = n.flag("validate_indices", True)
    return sparse.to_dense(found, default, validate_indices=checked, name=n.scope)


def _concat(n: Node, *inputs: Any) -> Any:
    count = len(inputs) // 3
    columns = [inputs[i : i + count] for i in range(0, 3 * count, count)]
    found = [_made(*each) for each in zip(*columns, strict=True)]
    return _parts(sparse.concat(n.whole("concat_dim"), found, name=n.scope))


def _split(n: Node, axis: Any, *inputs: Any) -> Any:
    where = int(n.known(axis, "along which axis it splits"))
    found = sparse.split(_made(*inputs), n.whole("num_split"), where, name=n.scope)
    return _columns(found)


def _filled(n: Node, indices: Any, values: Any, dense_shape: Any, default: Any) -> Any:
    found, is_empty = sparse.fill_empty_rows(
        _made(indices, values, dense_shape), default, name=n.scope
    )
    # Where elements came from only a gradient asks, which Flowbook builds itself.
    return [found.indices, found.values, is_empty, None]


def _set_operation(n: Node, first: Any, second: Any) -> Any:
    operation = n.text("set_operation")
    if operation in ("a-b", "b-a"):
        found = sets.difference(first, second, operation == "a-b", name=n.scope)
    elif operation == "union":
        found = sets.union(first, second, name=n.scope)
    else:
        found = sets.intersection(first, second, name=n.scope)
    return _parts(found)


def _strings_split(n: Node, strings: Any, sep: Any) -> Any:
    return _parts(split(strings, sep, n.whole("maxsplit", -1), name=n.scope))


def _split_at_any(n: Node, strings: Any, delimiter: Any) -> Any:
    separators = split(delimiter, []).values  # Each of its bytes is one.
    return _parts(split(strings, separators, -1, n.flag("skip_empty", True), name=n.scope))


def _ctc_loss(n: Node, inputs: Any, indices: Any, values: Any, lengths: Any) -> Any:
    # The gradient, which is the second output, Flowbook builds itself.
    dense_shape = cast(shape(inputs), int64)[1::-1]
    return [
        nn.ctc_loss(
            SparseTensor(indices, values, dense_shape),
            inputs,
            lengths,
            n.flag("preprocess_collapse_repeated"),
            n.flag("ctc_merge_repeated", True),
            n.flag("ignore_longer_outputs_than_inputs"),
            name=n.scope,
        ),
        None,
    ]


def _greedily_decoded(n: Node, inputs: Any, lengths: Any) -> Any:
    [found], score = nn.ctc_greedy_decoder(inputs, lengths, n.flag("merge_repeated"), name=n.scope)
    return [*_parts(found), score]


def _decoded(n: Node, inputs: Any, lengths: Any) -> Any:
    found, scores = nn.ctc_beam_search_decoder(
        inputs,
        lengths,
        n.whole("beam_width", 100),
        n.whole("top_paths", 1),
        n.flag("merge_repeated", True),
        name=n.scope,
    )
    return [*_columns(found), scores]


def _elementwise(operate: Callable[[Any, Any], Any]) -> Rule:
    def rule(n: Node, indices: Any, values: Any, dense_shape: Any, dense: Any) -> Any:
        return operate(_made(indices, values, dense_shape), dense).values

    return rule


RULES: Rules = {
    "CTCBeamSearchDecoder": _decoded,
    "CTCGreedyDecoder": _greedily_decoded,
    "CTCLoss": _ctc_loss,
    "DenseToDenseSetOperation": _set_operation,
    "DenseToSparseSetOperation": lambda n, a, *b: _set_operation(n, a, _made(*b)),
    "EditDistance": _of_sparse(edit_distance, 2, normalize=lambda n: n.flag("normalize", True)),
    "SetSize": _of_sparse(sets.size),
    "SparseAdd": _giving(_of_sparse(sparse.add, 2)),
    "SparseConcat": _concat,
    "SparseDenseCwiseDiv": _elementwise(lambda a, b: a / b),
    "SparseDenseCwiseMul": _elementwise(lambda a, b: a * b),
    "SparseFillEmptyRows": _filled,
    "SparseMatMul": named(matmul, **TRANSPOSED),
    "SparseReduceMax": _of_sparse(sparse.reduce_max, keepdims=lambda n: n.flag("keep_dims")),
    "SparseReduceSum": _of_sparse(sparse.reduce_sum, keepdims=lambda n: n.flag("keep_dims")),
    "SparseReorder": _giving(_of_sparse(sparse.reorder)),
    "SparseReshape": lambda n, indices, dense_shape, new: sparse_reshape(
        indices, dense_shape, new, name=n.scope
    ),
    "SparseSlice": _giving(_of_sparse(sparse.slice)),
    "SparseSoftmax": lambda n, *inputs: sparse.softmax(_made(*inputs), name=n.scope).values,
    "SparseSparseMaximum": _giving(_of_sparse(sparse.maximum, 2)),
    "SparseSparseMinimum": _giving(_of_sparse(sparse.minimum, 2)),
    "SparseSplit": _split,
    "SparseTensorDenseAdd": _of_sparse(sparse.add),
    "SparseTensorDenseMatMul": _of_sparse(
        sparse.sparse_dense_matmul,
        adjoint_a=lambda n: n.flag("adjoint_a"),
        adjoint_b=lambda n: n.flag("adjoint_b"),
    ),
    "SparseToDense": _to_dense,
    "SparseToSparseSetOperation": lambda n, *inputs: _set_operation(
        n, _made(*inputs[:3]), _made(*inputs[3:])
    ),
    "StringSplit": _split_at_any,
    "StringSplitV2": _strings_split,
}
