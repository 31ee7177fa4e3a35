"""Random orders and random parts: shuffles, permutations, crops."""

from __future__ import annotations

from typing import Any

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value, same_as_input
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import INDICES, MOVABLE, int32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.random import philox, sampling
from flowbook.graph.ops.basis.cast import cast
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.filling import range as range_of
from flowbook.graph.ops.basis.padding import slice as slice_of
from flowbook.graph.ops.basis.shaping import check_vector, shape_argument
from flowbook.graph.ops.basis.shaping import shape as shape_of
from flowbook.graph.ops.math.arithmetic import maximum
from flowbook.graph.ops.random.random_numbers import SEEDED, drawing_op, random_uniform, seeds
from flowbook.graph.ops.random.stateless_numbers import check_seed, start_of

__all__ = ["random_crop", "random_permutation", "random_shuffle", "stateless_random_shuffle"]


def _shuffle(xp: Any, state: Any, value: Any) -> Any:
    if not value.ndim:
        return value.copy()
    size = value.shape[0]
    key, counter = state.reserve(philox.blocks_for("float64", size))
    return value[sampling.permutation(key, counter, size)]


shuffle_op = drawing_op(
    "RandomShuffle",
    "value: T -> output: T",
    T=MOVABLE,
    attributes=SEEDED,
    infer=same_as_input,
    kernel=_shuffle,
    kinds=HOST,
    only_moves=True,
)


@shuffle_op.front
def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """The same rows in a random order, another one in every run.

    No gradient flows to `value`; `fb.gather(value, fb.random_permutation(n))` has one.

    Args:
        value: of any dtype; its rows are along the first dimension.
        seed: an int that makes the orders reproducible, see `set_random_seed`.
    """
    attributes = seeds(seed)
    return shuffle_op(value, **attributes, name=name)


def _stateless_shape(value: Tensor, seed: Tensor) -> Shape:
    check_seed(seed)
    return value.shape


def _stateless_shuffle(xp: Any, value: Any, seed: Any) -> Any:
    start = start_of(seed)
    return value[sampling.permutation(*start, value.shape[0])] if value.ndim else value.copy()


stateless_random_shuffle = OpDef(
    "StatelessRandomShuffle",
    "value: T, seed: S -> output: T",
    T=MOVABLE,
    S=INDICES,
    infer=_stateless_shape,
    kernel=_stateless_shuffle,
    kinds=HOST,
    host_args=("seed",),
    grad=NO_GRADIENT,
    only_moves=True,
    doc="""The same rows in an order that only the seeds decide.

    That of `fb.range(n)` is a permutation. No gradient flows to `value`.

    Args:
        value: of any dtype; its rows are along the first dimension.
        seed: two ints, a tensor of int32 or int64 or a sequence.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.stateless_random_shuffle(fb.range(5), seed=[3, 7])))
    [2 4 3 1 0]
    """,
)


@composed
def random_permutation(
    n: Any, dtype: Any = int32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """The numbers from 0 to below `n` in a random order, another one in every run.

    Args:
        n: an int or an int scalar tensor.
        dtype: of the numbers, int32 or int64.
        seed: an int that makes the orders reproducible, see `set_random_seed`.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sorted(sess.run(fb.random_permutation(4)).tolist()))
    [0, 1, 2, 3]
    """
    n = convert_to_tensor(n)
    if n.dtype not in INDICES or n.shape.rank not in (None, 0):
        raise InvalidTypeError(f"a permutation is of an int, not of {n!r}")
    known = constant_value(n)
    if known is not None and known < 0:
        raise InvalidArgumentError(f"there are no permutations of {known} things")
    return random_shuffle(range_of(cast(n, dtype)), seed=seed, name=name)


def _check_part(size: Tensor, value: Tensor) -> None:
    check_vector("size", size)
    wanted, dims = constant_value(size), value.shape.dims
    if wanted is None or dims is None:
        return
    if wanted.size != len(dims) or any(
        w < 0 or (d is not None and w > d) for w, d in zip(wanted.tolist(), dims, strict=True)
    ):
        raise InvalidArgumentError(f"no part {wanted.tolist()} lies in the shape {value.shape}")


@composed
def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A part of a tensor at a random place, another one in every run; gradients flow to `value`.

    Args:
        value: of any dtype.
        size: the part's shape: an int vector tensor, or a sequence of ints and int scalar tensors,
            with as many elements as `value` has dimensions, none above `value`'s.
        seed: an int that makes the places reproducible, see `set_random_seed`.

    Raises:
        InvalidArgumentError: if `size` exceeds the shape; in the run, where it is known only then.

    >>> import flowbook as fb
    >>> fb.random_crop(fb.zeros([32, 32, 3]), [28, 28, 3]).shape
    Shape([28, 28, 3])
    """
    value = convert_to_tensor(value)
    size = convert_to_tensor(shape_argument(size), name="size")
    _check_part(size, value)
    whole = shape_of(value, out_type=size.dtype)
    # A part that is too large leaves no room; slicing tells of it.
    room = maximum(whole - size + 1, 1)
    # The greatest integer, so that the remainder is as good as uniform.
    start = (
        random_uniform(shape_of(whole), maxval=size.dtype.max, dtype=size.dtype, seed=seed) % room
    )
    return slice_of(value, start, size, name=name)
