"""ONNX's operators that have no translation, each with the reason."""

from __future__ import annotations

_OPTIONAL = "there are no optional values"
_SEQUENCE = "there are no sequences of tensors"

UNSUPPORTED: dict[tuple[str, str], str] = {
    ("", "ConcatFromSequence"): _SEQUENCE,
    ("", "ImageDecoder"): "files of images are read by fb.image.decode_image, in fewer formats",
    ("", "MaxRoiPool"): "how many elements a maximum is of depends on values",
    ("", "Optional"): _OPTIONAL,
    ("", "OptionalGetElement"): _OPTIONAL,
    ("", "OptionalHasElement"): _OPTIONAL,
    ("", "SequenceAt"): _SEQUENCE,
    ("", "SequenceConstruct"): _SEQUENCE,
    ("", "SequenceEmpty"): _SEQUENCE,
    ("", "SequenceErase"): _SEQUENCE,
    ("", "SequenceInsert"): _SEQUENCE,
    ("", "SequenceLength"): _SEQUENCE,
    ("", "SequenceMap"): _SEQUENCE,
    ("", "SplitToSequence"): _SEQUENCE,
    ("", "StringSplit"): "how many columns there are depends on the strings",
    ("", "TfIdfVectorizer"): "there is no counting of n-grams",
    ("ai.onnx.ml", "TreeEnsemble"): "there are no decision trees",
}
