"""The resource behind `fb.lookup.MutableHashTable`: values by keys.

A change is whole or not at all: what was given is checked, and copied, before the one call that
puts it in.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from flowbook.exec.resources.kinds import Birth, Definition, makes
from flowbook.graph.model.attributes import same_attributes
from flowbook.graph.model.dtypes import DType, string
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.touch import HASH_TABLE

Array = np.ndarray[Any, Any]


class HashTable:
    """Values by keys, in host memory; safe to use from several threads.

    Args:
        name: what errors call it.
        attributes: those of the operation that owns it.

    Attributes:
        lock: held while it changes.
    """

    is_initialized = False

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        self.name = name
        self.lock = threading.Lock()
        self._attributes = attributes
        self._key_dtype: DType = attributes["key_dtype"]
        self._value_dtype: DType = attributes["value_dtype"]
        self._shape: tuple[int, ...] = tuple(attributes["value_shape"])
        self._values: dict[Any, Any] = {}

    @property
    def _contents(self) -> str:
        """Of which dtypes its keys and its values are, and of which shape each value."""
        values = f"{self._value_dtype.name} {list(self._shape)} values"
        return f"{self._key_dtype.name} keys and {values}"

    @property
    def size(self) -> int:
        """How many keys there are."""
        return len(self._values)

    def find(self, keys: Array, default: Array) -> Array:
        """The values of keys, and a default for those that are not there."""
        self._check(default, self._shape)
        value = _rows(default[None], default.ndim)[0]
        with self.lock:
            rows = [self._values.get(key, value) for key in keys.ravel().tolist()]
        return self._array(rows).reshape(keys.shape + self._shape)

    def insert(self, keys: Array, values: Array) -> None:
        """Give keys values."""
        self._check(values, keys.shape + self._shape)
        rows = values.reshape((keys.size, *self._shape))
        new = dict(zip(keys.ravel().tolist(), _rows(rows, len(self._shape)), strict=True))
        with self.lock:
            self._values.update(new)

    def remove(self, keys: Array) -> None:
        """Have keys be there no longer."""
        gone = set(keys.ravel().tolist())
        with self.lock:
            self._values = {k: v for k, v in self._values.items() if k not in gone}

    def export(self) -> tuple[Array, Array]:
        """All keys and their values."""
        with self.lock:
            return self._exported()

    def state(self) -> Any:
        """All keys and their values; whoever asks holds the lock."""
        keys, values = self._exported()
        return {"of": self._contents, "keys": _written(keys), "values": _written(values)}

    def set_state(self, state: Any) -> None:
        """Hold these instead, or nothing if it is None; ValueError or TypeError if they are none.

        Raises:
            InvalidArgumentError: if they are those of a table of other dtypes, or another shape.
        """
        if state is None:
            self.forget()
            return
        if not isinstance(state, dict) or state.keys() != {"of", "keys", "values"}:
            raise ValueError("a table has keys and values")
        if state["of"] != self._contents:
            raise InvalidArgumentError(
                f"the checkpoint has {state['of']!s:.80}, and table {self.name!r} takes "
                f"{self._contents}"
            )
        keys = _read(state["keys"], self._key_dtype)
        values = _read(state["values"], self._value_dtype).reshape((len(keys), *self._shape))
        rows = _rows(values, len(self._shape))
        held = dict(zip(keys.tolist(), rows, strict=True))
        with self.lock:
            self._values = held

    def forget(self) -> None:
        """Be empty."""
        with self.lock:
            self._values = {}

    def adopt(self, definition: Definition) -> str | None:
        """Be what another operation owns, if it says the same; else what it is instead."""
        if definition.kind == HASH_TABLE.name and same_attributes(
            definition.attributes, self._attributes
        ):
            return None
        return f"another {HASH_TABLE.name}, not a {definition.kind}"

    def _check(self, values: Array, shape: tuple[int, ...]) -> None:
        if values.shape != shape:
            raise InvalidArgumentError(
                f"values of shape {list(values.shape)} are none of table {self.name!r}: wanted is "
                f"{list(shape)}"
            )

    def _exported(self) -> tuple[Array, Array]:
        keys = np.empty(len(self._values), self._key_dtype.numpy)
        keys[:] = list(self._values)
        return keys, self._array(list(self._values.values()))

    def _array(self, rows: list[Any]) -> Array:
        made = np.empty((len(rows), *self._shape), self._value_dtype.numpy)
        if rows:
            made[:] = rows
        return made


def _rows(values: Array, rank: int) -> list[Any]:
    """What an array holds along its first axis, nobody else's."""
    return [row.copy() for row in values] if rank else values.tolist()


def _written(values: Array) -> Any:
    if values.dtype == object:
        return [base64.b64encode(value).decode() for value in values.ravel().tolist()]
    return base64.b64encode(values.tobytes()).decode()


def _read(state: Any, dtype: DType) -> Array:
    if dtype is not string:
        return np.frombuffer(base64.b64decode(state, validate=True), dtype.numpy)
    if not isinstance(state, list):
        raise TypeError("strings are a list")
    values = np.empty(len(state), object)
    values[:] = [base64.b64decode(text, validate=True) for text in state]
    return values


@makes(HASH_TABLE)
def _hash_table(birth: Birth) -> HashTable:
    return HashTable(birth.key.name, birth.attributes)
