"""The rows of the table, in its order."""

from __future__ import annotations

from benchmarks.case import Row
from benchmarks.rows import (
    build,
    chain,
    dispatch,
    extend,
    first_run,
    mlp,
    operations,
    run_overhead,
)

ROWS: dict[str, Row] = {
    row.name: row
    for module in (run_overhead, chain, dispatch, build, first_run, extend, mlp, operations)
    for row in module.ROWS
}
