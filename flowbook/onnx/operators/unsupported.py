"""ONNX's operators that have no translation, each with the reason."""

from __future__ import annotations

UNSUPPORTED: dict[tuple[str, str], str] = {
    ("", "ImageDecoder"): "files of images are read by fb.image.decode_image, in fewer formats",
    ("", "MaxRoiPool"): "how many elements a maximum is of depends on values",
    ("ai.onnx.ml", "TreeEnsemble"): "there are no decision trees",
}
