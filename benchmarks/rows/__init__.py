"""The rows of the table, in its order."""

from __future__ import annotations

from benchmarks.case import Row
from benchmarks.rows import (
    build,
    chain,
    cifar,
    control_flow,
    convolution,
    dispatch,
    dynamic_rnn,
    extend,
    first_run,
    lstm,
    mlp,
    operations,
    prediction,
    queues,
    random_numbers,
    run_overhead,
    saving,
    transformer,
    word2vec,
)

_MODULES = (
    run_overhead,
    chain,
    dispatch,
    control_flow,
    build,
    first_run,
    extend,
    mlp,
    convolution,
    cifar,
    transformer,
    lstm,
    dynamic_rnn,
    word2vec,
    queues,
    saving,
    prediction,
    operations,
    random_numbers,
)

ROWS: dict[str, Row] = {row.name: row for module in _MODULES for row in module.ROWS}
