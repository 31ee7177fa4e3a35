"""A program: what one step does, as plain data.

It names no Python object of the graph and holds no array but constants, so that the same program
can go to the engine of this process or, as bytes (`codec.py`), to that of another one. A part runs
on one device. A block holds what runs in one frame: the outermost, or one that its nodes enter.

Values are numbered within a part: first the feeds. Nodes are numbered within a part too: those of
the outermost block first, then those of the blocks within it, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from flowbook.exec.plan.memory import Ownership
from flowbook.graph.model.dtypes import DType, variant
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.shape import SCALAR, Shape


class PlanNode(NamedTuple):
    """One kernel call.

    Attributes:
        inputs: the values that it takes.
        outputs: the values that it produces.
        after: nodes that must end first, besides the producers of its inputs.
        type: what is computed, the key of an operation type; after rewriting not always the
            operation's own.
        attributes: of that type.
        dtypes: of the outputs.
        shapes: what is known of the outputs' shapes.
        key: the resource that it owns or touches, if there is one.
        name: that of the first operation that it stands for; what the compiler added has one too.
        behind: nodes that must have ended, or be dead, first; they keep nothing from running.
        sources: the operations that it stands for, by their ids in the graph: one, several where
            operations were joined, none of what the compiler added.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    after: tuple[int, ...]
    type: str
    attributes: Mapping[str, Any]
    dtypes: tuple[DType, ...]
    shapes: tuple[Shape, ...]
    key: ResourceKey | None
    name: str
    sources: tuple[int, ...]
    behind: tuple[int, ...] = ()


class Block(NamedTuple):
    """What runs in one frame.

    Attributes:
        nodes: in the order in which they run if nothing waits.
        blocks: the frames that its nodes enter.
        frame: the frame's name, by which nodes enter it; empty for the outermost.
        parallel_iterations: how many of its iterations may be under way at once.
    """

    nodes: tuple[PlanNode, ...]
    blocks: tuple[Block, ...] = ()
    frame: str = ""
    parallel_iterations: int = 1

    def walk(self) -> Iterator[Block]:
        """This block and those within it, in the order in which their nodes are numbered."""
        yield self
        for block in self.blocks:
            yield from block.walk()


class Feed(NamedTuple):
    """What is fed.

    Attributes:
        name: the tensor's.
        dtype: of the values.
        shape: what is known of theirs.
        replaces_constant: whether something may have been inferred from the tensor's own value.
    """

    name: str
    dtype: DType
    shape: Shape
    replaces_constant: bool


# What the parts of a program exchange values through: where there are several, it is fed last.
PORT = Feed("rendezvous", variant, SCALAR, False)


class Part(NamedTuple):
    """What one device does in a step.

    Attributes:
        device: the device's full name.
        feeds: which of the program's feeds it takes; these are its first values.
        values: how many values there are in all.
        block: what runs.
        fetches: the values to return.
        ownership: for each of them whose memory it has.
        targets: nodes that are run without returning anything.
        constants: values that are known.
        on_host: those of its feeds and constants that stay in host memory, whatever the device's.
        is_timed: whether it is noted when its kernels run (`engine/recording.py`).
    """

    device: str
    feeds: tuple[int, ...]
    values: int
    block: Block
    fetches: tuple[int, ...]
    ownership: tuple[Ownership, ...]
    targets: tuple[int, ...]
    constants: Mapping[int, np.ndarray[Any, Any]]
    on_host: tuple[int, ...] = ()
    is_timed: bool = False

    @property
    def nodes(self) -> tuple[PlanNode, ...]:
        """All nodes, by their numbers."""
        if not self.block.blocks:
            return self.block.nodes
        return tuple([node for block in self.block.walk() for node in block.nodes])


class Program(NamedTuple):
    """What one step does on all devices.

    Attributes:
        feeds: what it is given; of several parts the last is `PORT`.
        fetches: for each value to return the part that has it, and the place among that part's.
        parts: one for each device.
    """

    feeds: tuple[Feed, ...]
    fetches: tuple[tuple[int, int], ...]
    parts: tuple[Part, ...]

    @property
    def is_parted(self) -> bool:
        """Whether it was made for several devices, or for one whose memory is not the host's."""
        return self.feeds[-1:] == (PORT,)
