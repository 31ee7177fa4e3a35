"""Functions of a sparse tensor's elements, where they stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor

__all__ = ["map_values"]


def map_values(function: Callable[..., Tensor], *args: Any, **kwargs: Any) -> SparseTensor:
    """Apply a function of tensors to the elements of sparse tensors.

    What is zero stays zero: `fb.exp` does not make it one. A function of one argument that is zero
    at zero takes a sparse tensor itself, as in `fb.sqrt(x)`.

    Args:
        function: such as `fb.abs`; it gives as many elements as it is given.
        args: its arguments. Sparse tensors among these are replaced by their values; they share
            their indices, as a sparse tensor and one made from it by this function do.
        kwargs: its other arguments, likewise.

    Returns:
        A SparseTensor with the same indices and dense shape.

    Raises:
        InvalidArgumentError: if there is no sparse tensor, or they have indices of their own.

    >>> import flowbook as fb
    >>> x = fb.sparse.from_dense([0.0, 4.0, 9.0])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.sparse.to_dense(fb.sparse.map_values(fb.pow, x, 0.5))))
    [0. 2. 3.]
    """
    given = [a for a in (*args, *kwargs.values()) if isinstance(a, SparseTensor)]
    if not given:
        raise InvalidArgumentError("there is no sparse tensor among the arguments")
    x = given[0]
    if any(other.indices is not x.indices for other in given):
        raise InvalidArgumentError(
            "the sparse tensors have indices of their own",
            hint="fb.sparse.add, fb.sparse.maximum and fb.sparse.minimum take any two",
        )

    def values_of(arg: Any) -> Any:
        return arg.values if isinstance(arg, SparseTensor) else arg

    with x.graph.as_default():
        values = function(*map(values_of, args), **{k: values_of(a) for k, a in kwargs.items()})
    return x.with_values(values)
