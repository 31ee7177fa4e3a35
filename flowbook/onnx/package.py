"""The onnx package, which only this module imports, and only when a model is read or written."""

from __future__ import annotations

import importlib
from typing import Any

from flowbook.graph.model.errors import UnimplementedError


def onnx(part: str = "") -> Any:
    """The onnx package, or a module of it, such as "checker".

    Raises:
        UnimplementedError: if it is not installed.
    """
    try:
        return importlib.import_module(f"onnx.{part}" if part else "onnx")
    except ImportError as error:
        raise UnimplementedError(
            f"ONNX models need the onnx package, which cannot be imported: {error}",
            hint="pip install onnx",
        ) from None
