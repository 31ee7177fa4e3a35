"""Values as text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowbook.graph.numerics.tensor_text import text_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.1), "0.1"),
        (np.array(3), "3"),
        (np.array(True), "True"),
        (np.array(b"a b", object), "a b"),
        (np.array([1.0, np.nan, -np.inf, 1e30]), "[1.0 nan -inf 1e+30]"),
        (np.array([1 + 2j]), "[(1+2j)]"),
        (np.array([b'"', b"\n\\", "é".encode(), b"\xff"], object), r'["\"" "\n\\" "é" "\\xff"]'),
        (np.arange(6), "[0 1 2 3 4 5]"),
        (np.arange(7), "[0 1 2 ... 4 5 6]"),
        (np.zeros(0), "[]"),
        (np.zeros((0, 3)), "[] (shape [0, 3])"),
        (np.arange(4).reshape(2, 2), "[[0 1]\n [2 3]]"),
        (np.arange(4).reshape(2, 1, 2), "[[[0 1]]\n\n [[2 3]]]"),
    ],
    ids=range(13),
)
def test_text(value: Any, text: str) -> None:
    assert text_of(value) == text


def test_summaries() -> None:
    square = np.arange(9).reshape(3, 3)
    assert text_of(square, 1) == "[[0 ... 2]\n ...\n [6 ... 8]]"
    assert text_of(np.arange(9), -1) == "[0 1 2 3 4 5 6 7 8]"
    assert text_of(np.arange(9), 0) == "[...]"
    assert len(text_of(np.zeros((1000, 1000)))) < 400
