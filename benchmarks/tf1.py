"""TensorFlow's graph and session as the rows use them."""

from __future__ import annotations

from typing import Any

from benchmarks.systems import threads


def session(tf: Any, graph: Any, *, arithmetic: bool = True, rewrite: bool = True) -> Any:
    """A Session on `graph`, held to two threads.

    `arithmetic=False` keeps the optimizer from rewriting arithmetic: it would fold a chain of
    negations into nothing (and need 15 s for 10,000).  `rewrite=False` turns all its rewriting
    off: it would remove a chain of identities, and it takes most of a large graph's first run.
    """
    config = tf.ConfigProto(
        intra_op_parallelism_threads=threads(), inter_op_parallelism_threads=threads()
    )
    options = config.graph_options.rewrite_options
    if not arithmetic:
        options.arithmetic_optimization = type(options).OFF
    if not rewrite:
        options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
    return tf.Session(graph=graph, config=config)
