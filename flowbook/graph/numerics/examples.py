"""Examples, records of named features, as bytes: what is in them, and how they are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.numerics.example_pb2 import Example

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


def values_of(features: Mapping[str, Any], name: str, dtype: np.dtype[Any]) -> Any:
    """The values of a feature as a vector; None if the example has none of that name.

    Raises:
        InvalidArgumentError: if they are of another dtype.
    """
    # Asking a map of messages for a missing key would add it.
    kind = features[name].WhichOneof("kind") if name in features else None
    if kind is None:
        return None
    wanted, called = _LISTS[dtype]
    if kind != wanted:
        found = dict(_LISTS.values())[kind]
        raise InvalidArgumentError(f"feature {name!r} holds {found}, not {called}")
    return np.array(getattr(features[name], kind).value, dtype)


def example_of(vectors: Mapping[str, Any]) -> bytes:
    """The serialised example with features of these vectors: strings, float32 or int64.

    A feature without values has no dtype either, and is read as one that is missing.
    """
    example = Example()
    for name, vector in vectors.items():
        feature = example.features.feature[name]
        if vector.size:
            kind, _ = _LISTS[vector.dtype]
            getattr(feature, kind).value.extend(vector.tolist())
    made: bytes = example.SerializeToString(deterministic=True)
    return made
