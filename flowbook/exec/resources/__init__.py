"""What stateful kernels hold between steps: one module per kind of resource."""

from flowbook.exec.resources import (
    accumulator,
    barrier,
    checkpoint_files,
    counter,
    files,
    hash_table,
    kept_tensors,
    mutex,
    queue_kinds,
    random_state,
    reader,
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
    "kept_tensors",
    "mutex",
    "queue_kinds",
    "random_state",
    "reader",
    "stream",
    "variable",
]
