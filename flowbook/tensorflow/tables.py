"""Look-up tables that never change: what fills them is known when a graph is read.

Keys and values are constants, lines of a file of text, which a saved model has among its assets, or
what its checkpoint holds. What fills a table there has nothing left to do here. So it is with a
table that might change, if all that is ever put in is one of these: it holds that from the
beginning.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from flowbook.graph.model.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from flowbook.graph.ops.tables.found import sorted_table
from flowbook.graph.storing.text_columns import column, lines_of
from flowbook.tensorflow.bundle import Bundle
from flowbook.tensorflow.elements import dtype_of, to_array
from flowbook.tensorflow.messages_pb2 import MetaGraphDef, NodeDef
from flowbook.tensorflow.node import Array, Table
from flowbook.tensorflow.nodes import ASSIGNMENTS, PASSING, VARIABLES, Nodes, Source

TABLES = {"HashTable", "HashTableV2", "MutableHashTable", "MutableHashTableV2"}
_BY_ARRAYS = {
    "InitializeTable",
    "InitializeTableV2",
    "LookupTableImport",
    "LookupTableImportV2",
    "LookupTableInsert",
    "LookupTableInsertV2",
}
_BY_FILES = {"InitializeTableFromTextFile", "InitializeTableFromTextFileV2"}
FILLING = _BY_ARRAYS | _BY_FILES


def assets(message: MetaGraphDef, folder: Path | None) -> dict[str, str]:
    """The paths of a saved model's assets, by the nodes that hold them."""
    found = {}
    for asset in message.asset_file_def:
        path = (folder or Path()) / "assets" / Path(asset.filename).name
        found[asset.tensor_info.name.partition(":")[0]] = os.fspath(path)
    return found


def tables(
    nodes: Nodes, paths: Mapping[str, str], checkpoint: str | None = None
) -> dict[str, Table | str]:
    """The tables of a graph, by the names of their nodes; of one that is not read, why not.

    Args:
        nodes: the graph's nodes.
        paths: of the assets, by their nodes.
        checkpoint: the path of the one beside the graph, if there is one.
    """
    reader = _Reader(nodes, paths, checkpoint)
    filling: dict[str, list[str]] = {n: [] for n, p in nodes.protos.items() if p.op in TABLES}
    for name, proto in nodes.protos.items():
        if proto.op in FILLING and nodes.taken[name].values:
            table = nodes.behind(nodes.taken[name].values[0], TABLES)
            if table is not None:
                filling[table].append(name)
    found: dict[str, Table | str] = {}
    for name, by in filling.items():
        try:
            found[name] = reader.table(nodes.protos[name], by)
        except UnimplementedError as error:
            found[name] = error.message
    return found


class _Reader:
    """Reads what fills tables."""

    def __init__(self, nodes: Nodes, paths: Mapping[str, str], checkpoint: str | None) -> None:
        self._nodes = nodes
        self._paths = paths
        self._checkpoint = checkpoint

    def table(self, proto: NodeDef, by: list[str]) -> Table:
        """A table.

        Raises:
            UnimplementedError: if not exactly one node fills it, or with what only a run knows.
            NotFoundError: if a file is not there.
            InvalidArgumentError: if keys and values do not fit, or a key has two values.
        """
        if not by:
            raise UnimplementedError(
                "nothing fills it: what initialises tables was not kept when the graph was frozen"
            )
        if len(by) != 1:
            raise UnimplementedError(f"{len(by)} nodes fill it, where one is read")
        values = self._nodes.taken[by[0]].values
        if self._nodes.protos[by[0]].op in _BY_ARRAYS:
            if len(values) != 3:
                raise InvalidArgumentError(f"the node {by[0]!r} takes a table, keys and values")
            columns = [self._array(source).ravel() for source in values[1:]]
        else:
            columns = self._of_file(proto, self._nodes.protos[by[0]], values[1:])
        return Table(*sorted_table(proto.name, *columns))

    def _array(self, source: Source) -> Array:
        """A constant, an asset's path or a part of the checkpoint, by what hands it on."""
        name: str | None = source.node
        port = source.port
        for _ in range(len(self._nodes.protos)):
            if name is None:
                break
            if self._nodes.protos[name].op == "RestoreV2" and self._checkpoint is not None:
                return self._restored(name, port)
            if name in self._paths:
                return np.array([self._paths[name].encode()], object)
            if self._nodes.protos[name].op == "Const":
                return to_array(self._nodes.protos[name].attr["value"].tensor)
            name, port = self._before(name)
        raise UnimplementedError(f"what it holds, by {source.node!r}, is known to a run alone")

    def _restored(self, name: str, port: int) -> Array:
        """What a node that restores gives at an output."""
        asked = self._array(self._nodes.taken[name].values[1]).ravel()[port].decode()
        return Bundle(self._checkpoint).read([asked])[asked]

    def _before(self, name: str) -> Source | tuple[None, int]:
        """What another node hands on, or begins with; None if it makes its own."""
        type, values = self._nodes.protos[name].op, self._nodes.taken[name].values
        if type in VARIABLES:
            writes = [
                self._nodes.taken[c].values
                for c in self._nodes.consumers[name]
                if self._nodes.protos[c].op in ASSIGNMENTS
            ]
            begin = (v[1] for v in writes if len(v) == 2 and v[0].node == name)
            return next(begin, (None, 0))
        hands_on = type in (*PASSING, "ReadVariableOp", "PlaceholderWithDefault")
        return values[0] if hands_on and values else (None, 0)

    def _of_file(self, table: NodeDef, by: NodeDef, values: list[Source]) -> list[Array]:
        """The keys and values that are columns of a file of text."""
        if len(values) != 1:
            raise InvalidArgumentError(f"the node {by.name!r} takes a table, and a file's name")
        path = os.fsdecode(self._array(values[0]).ravel()[0])
        most = by.attr["vocab_size"].i if "vocab_size" in by.attr else -1
        try:
            lines = lines_of(path, None if most < 0 else most)
        except NotFoundError:
            raise NotFoundError(
                f"{path!r}, which fills the table {table.name!r}, is not there"
            ) from None
        delimiter = by.attr["delimiter"].s or b"\t"
        return [
            column(lines, by.attr[f"{side}_index"].i, delimiter, dtype, path, by.attr["offset"].i)
            for side, dtype in (
                ("key", dtype_of(table.attr["key_dtype"].type)),
                ("value", dtype_of(table.attr["value_dtype"].type)),
            )
        ]
