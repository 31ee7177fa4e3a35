"""What TensorFlow's operations become, by their types, in families.

The rules of `OPERATORS` get tensors; those of `BY_REFERENCE` what the nodes before give,
references to variables and arrays of tensors among it.
"""

from __future__ import annotations

from flowbook.graph.model.registry import op_named
from flowbook.tensorflow.alike import ALIKE, READ_ALIKE
from flowbook.tensorflow.node import Rules, named
from flowbook.tensorflow.operators import (
    arrays,
    derivatives,
    elementwise,
    images,
    indexing,
    linalg,
    lists,
    loops,
    losses,
    outside,
    queues,
    random,
    reductions,
    routing,
    signal,
    sparse,
    state,
    tables,
    text,
    training,
    windows,
)

OPERATORS: Rules = {
    **{type: named(op_named(type).public) for type in (*ALIKE, *READ_ALIKE)},
    **arrays.RULES,
    **derivatives.RULES,
    **elementwise.RULES,
    **images.RULES,
    **indexing.RULES,
    **linalg.RULES,
    **lists.RULES,
    **losses.RULES,
    **outside.RULES,
    **queues.RULES,
    **random.RULES,
    **reductions.RULES,
    **signal.RULES,
    **sparse.RULES,
    **text.RULES,
    **windows.RULES,
}

BY_REFERENCE: Rules = {
    **loops.RULES,
    **routing.RULES,
    **state.RULES,
    **tables.RULES,
    **training.RULES,
}
