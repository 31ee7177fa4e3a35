"""Labels for connectionist temporal classification, as dense tensors."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexing_nd import gather_nd, scatter_nd
from flowbook.graph.ops.arrays.masking import sequence_mask
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import ones_like
from flowbook.graph.ops.basis.joining import concat, stack
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.math.arithmetic import maximum
from flowbook.graph.ops.math.comparison import logical_and, not_equal, where
from flowbook.graph.ops.reduction.reductions import reduce_max
from flowbook.graph.ops.reduction.scans import cumsum

__all__ = ["collapse_repeated"]


@composed
def collapse_repeated(
    labels: Any, seq_length: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Sequences of labels in which those that follow an equal one are left out.

    Args:
        labels: [batch, most] of int32 or int64.
        seq_length: int32 or int64 [batch], how many labels of each sequence count.

    Returns:
        `(collapsed, lengths)`: [batch, longest], filled up with zeros, and [batch], how many labels
        are left of each.

    Raises:
        InvalidArgumentError: if labels have no two dimensions.

    >>> import flowbook as fb
    >>> collapsed, lengths = fb.nn.collapse_repeated([[1, 1, 2, 2, 1], [3, 3, 3, 4, 9]], [5, 4])
    >>> with fb.Session() as sess:
    ...     print(sess.run(collapsed).tolist(), sess.run(lengths))
    [[1, 2, 1], [3, 4, 0]] [3 2]
    """
    labels, lengths = convert_to_tensor(labels), convert_to_tensor(seq_length)
    if labels.shape.rank not in (None, 2):
        raise InvalidArgumentError(f"labels are [batch, most], not of shape {labels.shape}")
    whole = shape_of(labels)
    changes = not_equal(labels[:, 1:], labels[:, :-1])
    is_new = concat([ones_like(labels[:, :1], dtype="bool"), changes], 1)
    kept = logical_and(is_new, sequence_mask(lengths, whole[1]))
    left = reduce_sum(cast(kept, lengths.dtype), 1)
    places = where(kept)
    column = gather_nd(cumsum(cast(kept, "int64"), 1), places) - 1
    moved = scatter_nd(
        stack([places[:, 0], column], 1), gather_nd(labels, places), cast(whole, "int64")
    )
    return moved[:, : maximum(reduce_max(left), 0)], left
