"""Look-up tables that never change: a search among sorted keys."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model.dtypes import int64
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.ops.basis.constants import constant, no_op
from flowbook.graph.ops.tables.found import found
from flowbook.tensorflow.node import Node, Rules, Table, value_of
from flowbook.tensorflow.tables import FILLING, TABLES


def _table(n: Node) -> Table:
    if not isinstance(n.table, Table):
        raise UnimplementedError(f"{n} is not read: {n.table}")
    return n.table


def _found(n: Node, table: Table, keys: Any, default: Any) -> Any:
    known = constant(table.keys), constant(table.values)
    return found(*known, value_of(keys), value_of(default), name=n.scope)


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
