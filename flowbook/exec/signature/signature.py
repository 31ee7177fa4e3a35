"""What a step is asked for."""

from __future__ import annotations

from typing import NamedTuple

from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor


class Signature(NamedTuple):
    """What a step is asked for.

    Attributes:
        fetches: whose values are wanted.
        targets: what is to run beside.
        feeds: what is given.
        is_late: for each of the feeds, whether it arrives after the step has begun; empty if none.
    """

    fetches: tuple[Tensor, ...]
    targets: tuple[Operation, ...]
    feeds: tuple[Tensor, ...]
    is_late: tuple[bool, ...] = ()
