"""Examples, records of named features, as bytes: what is in them, and how they are made."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.numerics.formats.example_pb2 import Example, SequenceExample

# Which list of a feature holds the values of an array, and what such values are called.
_LISTS = {
    np.dtype(object): ("bytes_list", "string"),
    np.dtype(np.float32): ("float_list", "float32"),
    np.dtype(np.int64): ("int64_list", "int64"),
}


def features_of(record: bytes) -> Mapping[str, Any]:
    """The features of a serialised example by their names.

    Raises:
        InvalidArgumentError: if it is none.
    """
    try:
        return Example.FromString(record).features.feature
    except DecodeError as error:
        raise InvalidArgumentError(f"{record!r:.60} is no example: {error}") from None


def lacking(name: str, place: tuple[int, ...], features: Mapping[str, Any]) -> InvalidArgumentError:
    """The error of an example without a feature, with the names that it may have been.

    Args:
        name: the feature's.
        place: of the example among several; empty if there is one.
        features: what it has.
    """
    close = difflib.get_close_matches(name, features, 3)
    return InvalidArgumentError(
        f"example {f'{place[0]} (the first is 0) ' if place else ''}has no feature {name!r}",
        hint=f"did you mean {' or '.join(map(repr, close))}?" if close else None,
    )


def feature_lists_of(record: bytes) -> Mapping[str, Any]:
    """The lists of features of a serialised sequence example by their names.

    Raises:
        InvalidArgumentError: if it is none.
    """
    try:
        return SequenceExample.FromString(record).feature_lists.feature_list
    except DecodeError as error:
        raise InvalidArgumentError(f"{record!r:.60} is no sequence example: {error}") from None


def values_of(features: Mapping[str, Any], name: str, dtype: np.dtype[Any]) -> Any:
    """The values of a feature as a vector; None if the example has none of that name.

    Raises:
        InvalidArgumentError: if they are of another dtype.
    """
    # Asking a map of messages for a missing key would add it.
    return values_in(features[name], name, dtype) if name in features else None


def values_in(feature: Any, name: str, dtype: np.dtype[Any]) -> Any:
    """The values that a feature holds as a vector; None if it says of no dtype.

    Raises:
        InvalidArgumentError: if they are of another dtype.
    """
    kind = feature.WhichOneof("kind")
    if kind is None:
        return None
    wanted, called = _LISTS[dtype]
    if kind != wanted:
        found = dict(_LISTS.values())[kind]
        raise InvalidArgumentError(f"feature {name!r} holds {found}, not {called}")
    return np.array(getattr(feature, kind).value, dtype)


def rows_as_sparse(
    rows: Sequence[tuple[tuple[int, ...], Any]], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[Any, Any, Any]:
    """Vectors as the rows of a sparse tensor: its indices, values and shape.

    Args:
        rows: each with its place.
        shape: that of all places.
        dtype: of the values.
    """
    indices = [(*place, column) for place, values in rows for column in range(len(values))]
    longest = max((len(values) for _, values in rows), default=0)
    values = np.concatenate([np.empty(0, dtype), *[values for _, values in rows]])
    return (
        np.array(indices, np.int64).reshape(-1, len(shape) + 1),
        values.astype(dtype, copy=False),
        np.array([*shape, longest], np.int64),
    )


def example_of(vectors: Mapping[str, Any]) -> bytes:
    """The serialised example with features of these vectors: strings, float32 or int64.

    A feature without values has no dtype either, and is read as one that is missing.
    """
    example = Example()
    for name, vector in vectors.items():
        _fill(example.features.feature[name], vector)
    made: bytes = example.SerializeToString(deterministic=True)
    return made


def sequence_example_of(
    context: Mapping[str, Any], sequences: Mapping[str, Sequence[Any]]
) -> bytes:
    """The serialised sequence example of vectors, and of lists of vectors, one for each step."""
    example = SequenceExample()
    for name, vector in context.items():
        _fill(example.context.feature[name], vector)
    for name, vectors in sequences.items():
        steps = example.feature_lists.feature_list[name].feature
        for vector in vectors:
            _fill(steps.add(), vector)
    made: bytes = example.SerializeToString(deterministic=True)
    return made


def _fill(feature: Any, vector: Any) -> None:
    if vector.size:
        kind, _ = _LISTS[vector.dtype]
        getattr(feature, kind).value.extend(vector.tolist())
