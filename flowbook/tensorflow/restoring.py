"""Variables from V2 checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flowbook.exec.checkpoints.saver import Holder, Saver, put_values
from flowbook.exec.checkpoints.snapshot import Snapshot
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.ops.state.variables import Variable
from flowbook.tensorflow.bundle import Bundle


def list_variables(path: Any) -> list[tuple[str, DType, tuple[int, ...]]]:
    """See `flowbook.tensorflow.list_variables`."""
    entries = Bundle(path).entries
    return [(name, entry.dtype, entry.shape) for name, entry in sorted(entries.items())]


def load_variable(path: Any, name: str) -> Any:
    """See `flowbook.tensorflow.load_variable`."""
    return Bundle(path).read([name])[name]


def restore(
    sess: Holder,
    path: Any,
    var_list: Mapping[str, Variable] | Iterable[Variable] | None,
    *,
    partial: bool,
) -> list[str]:
    """See `flowbook.tensorflow.restore`."""
    found = Bundle(path)
    saver = Saver(var_list)
    if saver.tables:
        raise InvalidTypeError(
            f"var_list holds variables, not the table {next(iter(saver.tables))!r}"
        )
    variables = saver.chosen(sess.graph)
    if partial:
        variables = {n: v for n, v in variables.items() if found.has(n)}
    put_values(sess, found, variables, Snapshot({}, {}, None, {}))
    return [variable.op.name for variable in variables.values()]
