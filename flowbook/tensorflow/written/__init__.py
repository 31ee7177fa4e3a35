"""The nodes of TensorFlow that operations become, by their types, in families."""

from __future__ import annotations

from flowbook.tensorflow.written import (
    arrays,
    elementwise,
    loops,
    losses,
    outside,
    reductions,
    routing,
    state,
    windows,
)
from flowbook.tensorflow.written.types import Rules

RULES: Rules = {
    **arrays.RULES,
    **elementwise.RULES,
    **loops.RULES,
    **losses.RULES,
    **outside.RULES,
    **reductions.RULES,
    **routing.RULES,
    **state.RULES,
    **windows.RULES,
}
