"""Examples: records of named features in TensorFlow's format, each feature as a tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowbook.graph.model.convert import dtype_of, to_array
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import DType, as_dtype, float32, int64, string
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError, OpError
from flowbook.graph.model.shape import SCALAR, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.whole_numbers import as_whole
from flowbook.graph.numerics.formats.examples import example_of
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import reshape
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.text.feature_steps import parse_steps_op
from flowbook.graph.ops.text.feature_values import Placed, parse_example_op

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "SparseFeature",
    "VarLenFeature",
    "parse_example",
    "parse_single_example",
    "serialize_example",
]


@dataclass(frozen=True)
class FixedLenFeature:
    """A feature that has as many values in each example, and becomes a tensor.

    Args:
        shape: of its values in one example.
        dtype: float32, int64 or string.
        default_value: what it is in examples without it; None if it may not be missing.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


@dataclass(frozen=True)
class VarLenFeature:
    """A feature that has any number of values, and becomes a sparse tensor.

    Args:
        dtype: float32, int64 or string.
    """

    dtype: Any


@dataclass(frozen=True)
class SparseFeature:
    """Values and where they are, in features of their own, which become one sparse tensor.

    Args:
        index_key: the feature with the places of the values, int64; of a tensor of several
            dimensions a list of one feature for each.
        value_key: the feature with the values.
        dtype: of the values: float32, int64 or string.
        size: of the dimension, or a list as long as that of `index_key`.
        already_sorted: whether the places are in ascending order in every example.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


@dataclass(frozen=True)
class FixedLenSequenceFeature:
    """A feature of any number of steps, each of one shape, which becomes a tensor.

    In an example the steps follow one another in one vector, in a sequence example each has its
    own. Of several examples those with fewer steps are filled up.

    Args:
        shape: of a step.
        dtype: float32, int64 or string.
        allow_missing: whether what lacks it has no steps; otherwise that is an error.
        default_value: a scalar to fill up with; None for zeros, or empty strings.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


@parse_example_op.front
def parse_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None
) -> dict[str, Any]:
    """The features of examples, which are TensorFlow's records of named vectors.

    Args:
        serialized: a string vector, each element an example as bytes.
        features: what to read, by name: `FixedLenFeature`, `FixedLenSequenceFeature`,
            `VarLenFeature`, or by a name of one's own `SparseFeature`.

    Returns:
        By name a tensor [n, *shape] for each feature of fixed length, [n, steps, *shape] for each
        of several steps, and a SparseTensor with a row for each example for the others.

    Raises:
        InvalidArgumentError: in the run, if bytes are no example, or one lacks a feature without a
            default, or has other values of it, or places that do not fit its values.

    >>> import flowbook as fb
    >>> records = [fb.serialize_example({"n": [3], "x": [0.5, 1.5]}) for _ in range(2)]
    >>> found = fb.parse_example(records, {"x": fb.FixedLenFeature([2], fb.float32)})
    >>> with fb.Session() as sess:
    ...     print(sess.run(found["x"]))
    [[0.5 1.5]
     [0.5 1.5]]
    """
    return _parsed("parse_example", serialized, features, 1, name)


def parse_single_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None
) -> dict[str, Any]:
    """As `parse_example`, of one example: `serialized` is a scalar, and so much less are results.

    Args:
        serialized: a string scalar.
        features: as for `parse_example`.
        name: the operation's name.
    """
    return _parsed("parse_single_example", serialized, features, 0, name)


def _parsed(
    what: str, serialized: Any, features: Mapping[str, Any], rank: int, name: str | None
) -> dict[str, Any]:
    kinds = FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, SparseFeature
    check_features(features, kinds)
    if not features:
        raise InvalidTypeError("features are a dict of what to read, not {}")
    records = records_of(serialized, rank)
    stepped = {k: f for k, f in features.items() if isinstance(f, FixedLenSequenceFeature)}
    for key, feature in stepped.items():
        if Shape(feature.shape).size == 0:
            raise InvalidArgumentError(f"a step of feature {key!r} has at least one value")
    others = {k: f for k, f in features.items() if k not in stepped}
    found = parsed_features(records, others, name or what)
    if stepped:
        found |= parsed_steps(records, stepped, in_lists=False, name=f"{name or what}_steps")[0]
    return {key: found[key] for key in features}


def check_features(features: Any, kinds: tuple[type, ...]) -> None:
    """Refuse what does not say what to read.

    Raises:
        InvalidTypeError: if it is no dict of features of some kinds.
    """
    if not isinstance(features, Mapping):
        raise InvalidTypeError(f"features are a dict of what to read, not {features!r}")
    for key, feature in features.items():
        if not isinstance(feature, kinds):
            *others, last = [kind.__name__ for kind in kinds]
            raise InvalidTypeError(
                f"feature {key!r} is a {', a '.join(others)} or a {last}, not {feature!r}"
            )


def records_of(serialized: Any, rank: int) -> Tensor:
    """Examples as a string scalar or, if the rank is 1, a vector.

    Raises:
        InvalidArgumentError: if they are something else.
    """
    records: Tensor = convert_to_tensor(serialized, string)
    if records.shape.rank is None:
        records = reshape(records, [-1] * rank)
    if records.shape.rank != rank:
        wanted = "a string vector" if rank else "a string scalar"
        raise InvalidArgumentError(f"{wanted} is wanted, not one of shape {records.shape}")
    return records


def parsed_features(records: Tensor, features: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The features of a fixed or of any number of values, by name."""
    if not features:
        return {}
    fixed = {k: f for k, f in features.items() if isinstance(f, FixedLenFeature)}
    ragged = {k: f for k, f in features.items() if isinstance(f, VarLenFeature)}
    placed = {k: _placed(k, f) for k, f in features.items() if isinstance(f, SparseFeature)}
    types = {key: _dtype(key, feature.dtype) for key, feature in features.items()}
    shapes = _known_shapes(fixed)
    defaults = [
        _default(key, feature.default_value, types[key], shape)
        for (key, feature), shape in zip(fixed.items(), shapes, strict=True)
    ]
    found = parse_example_op(
        records,
        defaults,
        names=tuple(fixed),
        shapes=tuple(shapes),
        may_miss=tuple(
            [
                feature.default_value is not None or shape.size == 0
                for feature, shape in zip(fixed.values(), shapes, strict=True)
            ]
        ),
        ragged=tuple(ragged),
        placed=tuple(placed.values()),
        Tout=(
            *[types[k] for k in fixed],
            *[t for k in (*ragged, *placed) for t in (int64, types[k], int64)],
        ),
        name=name,
    )
    sparse = _sparse_tensors(found[len(fixed) :])
    return dict(zip((*fixed, *ragged, *placed), (*found[: len(fixed)], *sparse), strict=True))


def parsed_steps(
    records: Tensor, features: Mapping[str, Any], in_lists: bool, name: str
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The features of any number of steps, by name, and the numbers of steps of those of one shape.

    Args:
        records: the examples.
        features: what to read of them.
        in_lists: whether they are sequence examples.
        name: the operation's name.
    """
    if not features:
        return {}, {}
    fixed = {k: f for k, f in features.items() if isinstance(f, FixedLenSequenceFeature)}
    ragged = {k: f for k, f in features.items() if isinstance(f, VarLenFeature)}
    types = {key: _dtype(key, feature.dtype) for key, feature in features.items()}
    shapes = _known_shapes(fixed)
    defaults = [
        _default(key, _filling(feature, types[key]), types[key], SCALAR)
        for key, feature in fixed.items()
    ]
    found = parse_steps_op(
        records,
        defaults,
        names=tuple(fixed),
        shapes=tuple(shapes),
        may_miss=tuple([bool(feature.allow_missing) for feature in fixed.values()]),
        ragged=tuple(ragged),
        in_lists=in_lists,
        Tout=(
            *[types[k] for k in fixed],
            *[int64 for _ in fixed],
            *[t for k in ragged for t in (int64, types[k], int64)],
        ),
        name=name,
    )
    count = len(fixed)
    sparse = _sparse_tensors(found[2 * count :])
    values = dict(zip((*fixed, *ragged), (*found[:count], *sparse), strict=True))
    return values, dict(zip(fixed, found[count : 2 * count], strict=True))


def _filling(feature: FixedLenSequenceFeature, dtype: DType) -> Any:
    if feature.default_value is not None:
        return feature.default_value
    return b"" if dtype is string else 0


def _placed(key: str, feature: SparseFeature) -> Placed:
    keys, sizes = (
        tuple(each) if isinstance(each, list | tuple) else (each,)
        for each in (feature.index_key, feature.size)
    )
    if not keys or len(keys) != len(sizes):
        raise InvalidArgumentError(
            f"feature {key!r} has {len(keys)} index keys and {counted(len(sizes), 'size')}"
        )
    for size in sizes:
        if (as_whole(size) or 0) < 1:
            raise InvalidArgumentError(f"the size of feature {key!r} is from 1 on, not {size!r}")
    for each in (*keys, feature.value_key):
        if not isinstance(each, str):
            raise InvalidTypeError(f"the keys of feature {key!r} are names, not {each!r}")
    return keys, feature.value_key, tuple(map(int, sizes)), bool(feature.already_sorted)


def _sparse_tensors(parts: Sequence[Tensor]) -> list[SparseTensor]:
    return [SparseTensor(*parts[i : i + 3]) for i in range(0, len(parts), 3)]


def _known_shapes(features: Mapping[str, Any]) -> list[Shape]:
    shapes = [Shape(feature.shape) for feature in features.values()]
    for key, shape in zip(features, shapes, strict=True):
        if not shape.is_fully_defined:
            raise InvalidArgumentError(f"the shape of feature {key!r} is known, not {shape}")
    return shapes


def _dtype(key: str, dtype: Any) -> DType:
    found = as_dtype(dtype)
    if found not in (float32, int64, string):
        raise InvalidTypeError(f"feature {key!r} is float32, int64 or string, not {found.name}")
    return found


def _default(key: str, value: Any, dtype: DType, shape: Shape) -> Any:
    """What stands for a feature that is missing; of one that may not be, nothing."""
    if value is None:
        return np.zeros(0, np.float32)
    array = to_array(value, dtype)
    try:
        return np.array(np.broadcast_to(array, tuple(shape.as_list())))  # type: ignore[arg-type]
    except ValueError:
        raise InvalidArgumentError(
            f"the default of feature {key!r} is of shape {list(array.shape)}, not {shape}"
        ) from None


def serialize_example(values: Mapping[str, Any]) -> bytes:
    """An example as bytes, which `parse_example` and TensorFlow read.

    Args:
        values: the features by name: numbers, strings, or arrays of them, which become vectors.
            Floats become float32, and integers int64.

    Raises:
        InvalidTypeError: if something is neither numbers nor strings.
    """
    return example_of({name: vector_of(name, value) for name, value in values.items()})


def vector_of(name: str, value: Any) -> Any:
    """The values of a feature as a vector; InvalidTypeError if they are none."""
    try:
        return _vector(value)
    except OpError as error:
        raise type(error)(f"feature {name!r}: {error.message}", hint=error.hint) from None


def _vector(value: Any) -> Any:
    """Values as a vector of one of the three dtypes."""
    array = to_array(value).reshape(-1)
    dtype = dtype_of(array)
    if dtype is string:
        return array
    if dtype is bool_ or dtype.is_integer:
        return to_array(array.astype(np.int64) if dtype is bool_ else array.tolist(), int64)
    if dtype.is_floating:
        return array.astype(np.float32)
    raise InvalidTypeError(f"numbers or strings are wanted, not {dtype.name}")
