"""Look-up tables that runs change: a resource, as a variable is, whose rows have keys.

Within a step a look-up that no path orders after a change sees the table from before it, and
changes go in the order of construction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowbook.graph.building.scopes import init_scope
from flowbook.graph.definition.inference import nothing, scalar
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.definition.public import builds
from flowbook.graph.model.dtypes import INTS, REALS, DType, as_dtype, string
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import SCALAR, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import HASH_TABLE, READS, WRITES
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.tables.static_tables import (
    in_place_of,
    keys_of,
    require_key,
    uninitialized,
)

__all__ = ["MutableHashTable"]

_VALUES = (*REALS, bool_, string)
_COMMON: dict[str, Any] = {
    "kinds": HOST,
    "grad": NO_GRADIENT,
    "only_moves": True,
    "needs_value": False,
}

table_op = OpDef(
    "MutableHashTable",
    "-> handle: resource",
    attributes={
        "key_dtype": REQUIRED,
        "value_dtype": REQUIRED,
        "value_shape": SCALAR,
        "shared_name": "",
    },
    infer=scalar,
    owns=HASH_TABLE.name,
    only_moves=True,
)


def _found_shape(table: Tensor, keys: Tensor, default_value: Tensor) -> Shape:
    return keys.shape.concatenate(default_value.shape)


find_op = OpDef(
    "TableFind",
    "table: resource, keys: K, default_value: V -> values: V",
    K=(*INTS, string),
    V=_VALUES,
    infer=_found_shape,
    kernel=lambda xp, table, keys, default_value: table.find(keys, default_value),
    touches=READS,
    aliases={},
    **_COMMON,
)

size_op = OpDef(
    "TableSize",
    "table: resource -> size: int64",
    infer=scalar,
    kernel=lambda xp, table: np.int64(table.size),
    touches=READS,
    aliases={},
    **_COMMON,
)


def _exported_shapes(table: Tensor, value_shape: Shape, **_: Any) -> list[Shape]:
    rows = Shape([None])
    return [rows, rows.concatenate(value_shape)]


export_op: OpDef[tuple[Tensor, Tensor]] = OpDef(
    "TableExport",
    "table: resource -> keys: key_dtype, values: value_dtype",
    attributes={"key_dtype": REQUIRED, "value_dtype": REQUIRED, "value_shape": SCALAR},
    infer=_exported_shapes,
    kernel=lambda xp, table: table.export(),
    touches=READS,
    aliases={},
    **_COMMON,
)


def _inserted(xp: Any, table: Any, keys: Any, values: Any) -> tuple[()]:
    table.insert(keys, values)
    return ()


def _removed(xp: Any, table: Any, keys: Any) -> tuple[()]:
    table.remove(keys)
    return ()


insert_op: OpDef[Operation] = OpDef(
    "TableInsert",
    "table: resource, keys: K, values: V ->",
    K=(*INTS, string),
    V=_VALUES,
    infer=nothing,
    kernel=_inserted,
    touches=WRITES,
    **_COMMON,
)

remove_op: OpDef[Operation] = OpDef(
    "TableRemove",
    "table: resource, keys: K ->",
    K=(*INTS, string),
    infer=nothing,
    kernel=_removed,
    touches=WRITES,
    **_COMMON,
)


@builds
@table_op.front
@elsewhere({**uninitialized("empty"), "table_ref": "table.handle"})
class MutableHashTable:
    """A table that runs change.

    It begins empty. Checkpoints save and restore it, with all else that a training goes on from.

    Args:
        key_dtype: that of the keys: string, or one of integers.
        value_dtype: that of the values: real numbers, bool or string.
        default_value: the value of a key that is not in it. Its shape, which is known, is that of
            each value.
        shared_name: a name under which several operations share one table.
        name: the operation's name.

    Attributes:
        op: the operation that produces its handle.
        handle: the handle.
        default_value: as given, a tensor.

    Raises:
        InvalidTypeError: if keys or values cannot be of these dtypes.
        InvalidArgumentError: if the shape of the default is not known.

    >>> import flowbook as fb
    >>> ages = fb.lookup.MutableHashTable(fb.string, fb.int64, default_value=-1)
    >>> with fb.Session() as sess:
    ...     sess.run(ages.insert(["ada", "alan"], [36, 41]))
    ...     sess.run(ages.remove(["alan"]))
    ...     print(*sess.run([ages.lookup(["alan", "ada"]), ages.size()]))
    [-1 36] 1
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        typed: dict[str, Any] = {
            "key_dtype": as_dtype(key_dtype),
            "value_dtype": as_dtype(value_dtype),
        }
        require_key(typed["key_dtype"])
        if typed["value_dtype"] not in _VALUES:
            raise InvalidTypeError(
                f"values are real numbers, bool or string, not {typed['value_dtype'].name}"
            )
        with init_scope():
            given = convert_to_tensor(default_value, typed["value_dtype"])
        if not given.shape.is_fully_defined:
            raise InvalidArgumentError(
                f"the shape of the default is that of each value, and known, not {given.shape}"
            )
        typed["value_shape"] = given.shape
        self.default_value: Tensor = given
        with init_scope():
            self.handle: Tensor = table_op(**typed, shared_name=shared_name or "", name=name)
        self.op: Operation = self.handle.op
        self._typed = typed

    @property
    def name(self) -> str:
        """The name of the operation that produces its handle."""
        return self.op.name

    @property
    def key_dtype(self) -> DType:
        """That of the keys."""
        return self._typed["key_dtype"]  # type: ignore[no-any-return]

    @property
    def value_dtype(self) -> DType:
        """That of the values."""
        return self._typed["value_dtype"]  # type: ignore[no-any-return]

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def size(self, name: str | None = None) -> Tensor:
        """How many keys there are: an int64 scalar."""
        with self.op.graph.as_default():
            return size_op(self.handle, name=name)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys.

        Args:
            keys: a tensor of any shape, or a SparseTensor if values are scalars.
            name: the operation's name.

        Returns:
            A tensor of that shape and, behind it, the shape of a value; or a SparseTensor with the
            values in the keys' places.

        Raises:
            InvalidTypeError: if the keys are of another dtype.
        """
        with self.op.graph.as_default():
            wanted, sparse = keys_of(keys, self.key_dtype)
            values = find_op(self.handle, wanted, self.default_value, name=name)
            return in_place_of(sparse, values)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """Give keys values, in place of those that they have.

        Args:
            keys: of any shape; of one that is there twice, the last value counts.
            values: of that shape and, behind it, the shape of a value.
            name: the operation's name.

        Raises:
            InvalidTypeError: if keys or values are of another dtype.
            InvalidArgumentError: if the shapes do not go together, maybe in the run alone.
        """
        with self.op.graph.as_default():
            wanted = convert_to_tensor(keys, self.key_dtype)
            given = convert_to_tensor(values, self.value_dtype)
            fitting = wanted.shape.concatenate(self.default_value.shape)
            if not fitting.is_compatible_with(given.shape):
                raise InvalidArgumentError(
                    f"values of shape {given.shape} do not fit keys of shape {wanted.shape}: "
                    f"each is of shape {self.default_value.shape}"
                )
            return insert_op(self.handle, wanted, given, name=name)

    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """Have keys be in it no longer; those that are not are passed over.

        Args:
            keys: of any shape.
            name: the operation's name.

        Raises:
            InvalidTypeError: if they are of another dtype.
        """
        with self.op.graph.as_default():
            wanted = convert_to_tensor(keys, self.key_dtype)
            return remove_op(self.handle, wanted, name=name)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys [n] and their values [n, ...], in the order in which keys first came."""
        with self.op.graph.as_default():
            return export_op(self.handle, **self._typed, name=name)

    def as_tensor(self, handle: bool) -> Tensor:
        """Its handle, which is all that operations can take of it."""
        if not handle:
            raise InvalidTypeError(f"table {self.name!r} is no tensor", hint="table.lookup(keys)")
        return self.handle
