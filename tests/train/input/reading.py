"""Inputs that come to an end, and all that they give."""

from __future__ import annotations

from typing import Any

import flowbook as fb


def everything(fetches: Any) -> list[Any]:
    with fb.Session() as sess:
        return list(fb.train.until_end(sess, fetches))


def numbers(limit: int, epochs: int = 1) -> Any:
    return fb.train.range_input_producer(limit, epochs, shuffle=False).dequeue()
