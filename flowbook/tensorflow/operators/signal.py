"""Fourier transforms."""

from __future__ import annotations

from typing import Any

from flowbook.graph.ops.signal import fourier
from flowbook.tensorflow.node import Node, Rule, Rules


def _of_length(function: Any) -> Rule:
    """The rule of a transform whose length is an input, and decides the shape of what it gives."""

    def rule(n: Node, x: Any, length: Any) -> Any:
        sizes = [int(i) for i in n.known(length, "the length")]
        return function(x, sizes, name=n.scope)

    return rule


RULES: Rules = {
    "IRFFT": _of_length(fourier.irfft),
    "IRFFT2D": _of_length(fourier.irfft2d),
    "IRFFT3D": _of_length(fourier.irfft3d),
    "RFFT": _of_length(fourier.rfft),
    "RFFT2D": _of_length(fourier.rfft2d),
    "RFFT3D": _of_length(fourier.rfft3d),
}
