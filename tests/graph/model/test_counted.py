"""How many there are, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.counted import counted


def test_one_is_singular() -> None:
    assert counted(1, "operation") == "1 operation"
    assert counted(0, "operation") == "0 operations"
    assert counted(36000, "operation") == "36,000 operations"
    assert [counted(n, "axis", "axes") for n in (1, 2)] == ["1 axis", "2 axes"]


MESSAGES: dict[str, tuple[Callable[[], Any], str]] = {
    "axis": (lambda: fb.concat([[1.0]], 2), "out of range for 1 dimension:"),
    "indices": (lambda: fb.constant([1.0])[0, 0], "2 indices for the 1 dimension of"),
    "queue": (lambda: fb.FIFOQueue(3, [fb.int32] * 2).enqueue([1]), "1 component cannot"),
    "feed": (
        lambda: fb.Session().run(x := fb.placeholder(fb.float32, [2, 2]), {x: np.ones(3)}),
        "has 1 dimension instead of 2",
    ),
    "sparse": (lambda: fb.SparseTensor([[0]], [1.0, 2.0], [3]), "1 index cannot go with 2 values"),
}


@pytest.mark.parametrize("what", MESSAGES)
def test_errors_count_one_as_one(what: str) -> None:
    build, message = MESSAGES[what]
    with pytest.raises(fb.errors.OpError, match=message):
        build()
