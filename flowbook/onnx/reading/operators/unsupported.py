"""ONNX's operators that have no translation, each with the reason."""

from __future__ import annotations

UNSUPPORTED: dict[tuple[str, str], str] = {
    ("", "MaxRoiPool"): "how many elements a maximum is of depends on values",
}
