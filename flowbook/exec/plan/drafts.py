"""What the parts of a program are gathered in: a piece for each device, its nodes not numbered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flowbook.exec.devices.kinds import link_of
from flowbook.exec.plan.memory import Ownership
from flowbook.exec.plan.program import PlanNode, Program
from flowbook.graph.definition.op_def import OpDef
from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.dtypes import DType, as_dtype
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.shape import Shape


def is_apart(device: str) -> bool:
    """Whether a device's memory is not the host's."""
    return link_of(DeviceSpec.parse(device).kind or "") is not None


class Spec(NamedTuple):
    """What is known of a value."""

    dtype: DType
    shape: Shape
    name: str


@dataclass(eq=False)
class Draft:
    """A node that will be of a part.

    Attributes:
        node: its inputs and outputs are numbers of the whole program's values, and of new ones.
        after, behind: the drafts that it waits for.
        follows: what comes right after it in the order of the part.
    """

    node: PlanNode
    after: list[Draft] = field(default_factory=list)
    behind: list[Draft] = field(default_factory=list)
    follows: list[Draft] = field(default_factory=list)


class Piece:
    """What one device does, as it is gathered.

    Attributes:
        device: its name.
        drafts: what runs in each frame, by the frame's place among all.
        is_apart: whether its memory is not the host's.
        received: what came over, by the value's number.
        hosted: what is in host memory although the device's is another, by the value's number.
        rounds: for each frame that it is in the Merge of its iterations.
        targets: what is run without returning anything.
        fetches: the values to return, each with its place in the program and whose memory it is.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.drafts: dict[int, list[Draft]] = {0: []}
        self.is_apart = is_apart(device)
        self.received: dict[int, int] = {}
        self.hosted: dict[int, int] = {}
        self.rounds: dict[int, Draft] = {}
        self.targets: list[Draft] = []
        self.fetches: list[tuple[int, int, Ownership]] = []


def host_args_of(node: PlanNode) -> list[bool]:
    """For each input of a node whether its kernel gets it in host memory."""
    op_def = op_keyed(node.type)
    if not op_def.host_args:
        return [False] * len(node.inputs)
    found: list[bool] = []
    for argument, given in zip(
        op_def.inputs, op_def.grouped(node.inputs, node.attributes), strict=True
    ):
        is_host = argument.name in op_def.host_args
        found += [is_host] * (len(given) if argument.is_list else 1)
    return found


def with_followers(drafts: Sequence[Draft]) -> Iterator[Draft]:
    """Drafts, each with what comes right after it."""
    for draft in drafts:
        yield draft
        yield from with_followers(draft.follows)


def compiled(
    op_def: OpDef[Any],
    inputs: tuple[int, ...],
    outputs: Mapping[int, tuple[DType, Shape]] | tuple[()],
    name: str,
    **attributes: Any,
) -> PlanNode:
    """A node that stands for no operation."""
    dtypes, shapes = zip(*dict(outputs).values(), strict=True) if outputs else ((), ())
    return PlanNode(
        inputs, tuple(outputs), (), op_def.key, attributes, dtypes, shapes, None, name, ()
    )


def specs_of(program: Program) -> dict[int, Spec]:
    """What is known of each value."""
    (part,) = program.parts
    found = {
        value: Spec(
            program.feeds[place].dtype, program.feeds[place].shape, program.feeds[place].name
        )
        for value, place in enumerate(part.feeds)
    }
    for value, constant in part.constants.items():
        found[value] = Spec(as_dtype(constant.dtype), Shape.of(constant.shape), "constant")
    for node in part.nodes:
        for port, value in enumerate(node.outputs):
            found[value] = Spec(node.dtypes[port], node.shapes[port], f"{node.name}:{port}")
    return found
