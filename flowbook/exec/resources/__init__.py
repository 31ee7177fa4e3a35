"""What stateful kernels hold between steps: one module per kind of resource."""

from flowbook.exec.resources import (
    accumulator,
    barrier,
    checkpoint_files,
    counter,
    files,
    hash_table,
    mutex,
    queue_kinds,
    random_state,
    reader,
    session_tensors,
    stream,
    variable,
)

__all__ = [
    "accumulator",
    "barrier",
    "checkpoint_files",
    "counter",
    "files",
    "hash_table",
    "mutex",
    "queue_kinds",
    "random_state",
    "reader",
    "session_tensors",
    "stream",
    "variable",
]
