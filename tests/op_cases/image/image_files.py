"""Encoding and decoding, as far as rows of values can tell; both are checked there in full."""

from __future__ import annotations

from tests.op_cases.case import Scenario

SCENARIOS = [
    Scenario(type, "tests/graph/ops/image/test_files.py")
    for type in (
        "DecodeImage",
        "DecodeGif",
        "EncodePng",
        "EncodeJpeg",
        "EncodeJpegVariableQuality",
        "ExtractJpegShape",
    )
]
