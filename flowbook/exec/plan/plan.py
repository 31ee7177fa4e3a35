"""A plan: what one step does, as plain data.

It names no Python object of the graph and holds no array but constants, so that the same plan can
go to the engine of this process or to another one. Values are numbered: first the feeds, in the
order of the signature.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from flowbook.exec.plan.memory import Ownership


class PlanNode(NamedTuple):
    """One kernel call.

    Attributes:
        name: the operation's name.
        type: what is computed, an operation type; after rewriting not always the operation's own.
        attributes: of that type.
        inputs: the values that it takes.
        outputs: the values that it produces.
        after: nodes, by index, that must end first, besides the producers of its inputs.
    """

    name: str
    type: str
    attributes: Mapping[str, Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    after: tuple[int, ...]


class Plan(NamedTuple):
    """One step on one device.

    Attributes:
        device: the device's full name.
        feeds: how many values are fed.
        values: how many values there are in all.
        nodes: in the order in which they run if nothing waits.
        fetches: the values to return.
        ownership: for each fetch whose memory it has.
        targets: nodes, by index, that are run without returning anything.
        constants: values that are known.
    """

    device: str
    feeds: int
    values: int
    nodes: tuple[PlanNode, ...]
    fetches: tuple[int, ...]
    ownership: tuple[Ownership, ...]
    targets: tuple[int, ...]
    constants: dict[int, np.ndarray[Any, Any]]
