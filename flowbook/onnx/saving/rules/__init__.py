"""How operations are written as ONNX nodes: tables by type, one file for each family."""

from __future__ import annotations

from flowbook.onnx.saving.rules import arrays, elementwise, losses, reductions, shaping, windows
from flowbook.onnx.saving.rules.run_axes import RUN_AXES, FixedAxes
from flowbook.onnx.saving.rules.types import Rules

__all__ = ["RULES", "RUN_AXES", "FixedAxes"]

RULES: Rules = {
    **arrays.RULES,
    **elementwise.RULES,
    **losses.RULES,
    **reductions.RULES,
    **shaping.RULES,
    **windows.RULES,
}
