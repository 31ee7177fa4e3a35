"""Look-up tables that never change: a search among sorted keys."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model.dtypes import int64
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.ops.arrays.gathering import gather
from flowbook.graph.ops.arrays.positions import searchsorted
from flowbook.graph.ops.basis.constants import constant, no_op
from flowbook.graph.ops.basis.filling import fill
from flowbook.graph.ops.basis.shaping import reshape, shape
from flowbook.graph.ops.math.arithmetic import minimum
from flowbook.graph.ops.math.comparison import equal, where
from flowbook.tensorflow.node import Node, Rules, Table, value_of
from flowbook.tensorflow.tables import FILLING, TABLES


def _table(n: Node) -> Table:
    if not isinstance(n.table, Table):
        raise UnimplementedError(f"{n} is not read: {n.table}")
    return n.table


def _found(n: Node, table: Table, keys: Any, default: Any) -> Any:
    keys, default = value_of(keys), value_of(default)
    if not len(table.keys):
        return fill(shape(keys), default, name=n.scope)
    known = constant(table.keys)
    places = searchsorted(known, reshape(keys, [-1]))
    places = reshape(minimum(places, len(table.keys) - 1), shape(keys))
    there = equal(gather(known, places), keys)
    return where(there, gather(constant(table.values), places), default, name=n.scope)


RULES: Rules = {
    **dict.fromkeys(TABLES, _table),
    **dict.fromkeys(FILLING, lambda n, *_: no_op(name=n.scope)),
    **dict.fromkeys(
        ("LookupTableExport", "LookupTableExportV2"),
        lambda n, table: [constant(table.keys, name=n.scope), constant(table.values)],
    ),
    **dict.fromkeys(("LookupTableFind", "LookupTableFindV2"), _found),
    **dict.fromkeys(
        ("LookupTableSize", "LookupTableSizeV2"),
        lambda n, table: constant(len(table.keys), int64, name=n.scope),
    ),
}
