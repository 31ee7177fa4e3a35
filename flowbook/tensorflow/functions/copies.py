"""A copy of a function's body, in the place of a node that calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.tensorflow.functions.library import Body, Value
from flowbook.tensorflow.messages_pb2 import NodeDef

_COLOCATED = "loc:@"


class Given(NamedTuple):
    """What stands for an argument.

    Attributes:
        text: the value, as nodes name what they take.
        is_inside: whether it is there only where the body is to run.
    """

    text: str
    is_inside: bool = False


class Copy(NamedTuple):
    """The nodes of a body under other names.

    Attributes:
        nodes: these.
        results: what it gives, as nodes name what they take.
        ends: "^node" for each node that what it does ends with.
    """

    nodes: list[NodeDef]
    results: list[str]
    ends: list[str]


def copied(
    body: Body, prefix: str, given: Sequence[Given], waited: Sequence[str], device: str
) -> Copy:
    """Copy a function's body.

    Args:
        body: the body.
        prefix: what the names of the copies begin with.
        given: what stands for its arguments.
        waited: "^node" for each node that has to have run before any of the body does.
        device: where nodes are to run that do not say.

    Raises:
        InvalidArgumentError: if it takes another number of arguments.
    """
    if len(given) != body.arguments:
        raise InvalidArgumentError(
            f"the function {body.name!r} takes {body.arguments} arguments, and is given "
            f"{len(given)}"
        )
    return _Copying(body, prefix, given, waited, device).copy()


class _Copying:
    def __init__(
        self, body: Body, prefix: str, given: Sequence[Given], waited: Sequence[str], device: str
    ) -> None:
        self._body = body
        self._prefix = prefix
        self._given = given
        self._waited = waited
        self._device = device
        # A node that waits holds up what takes its values; a handle that passes through one does
        # not, for it is there in any case.
        self._holding = {node.name for node in body.nodes if node.op != "Identity"}

    def copy(self) -> Copy:
        body = self._body
        return Copy(
            [self._node(node) for node in body.nodes],
            [self._text(value) for value in body.results],
            [f"^{self._prefix}{name}" for name in body.ends],
        )

    def _text(self, value: Value) -> str:
        if not value.node:
            return self._given[value.port].text
        name = f"{self._prefix}{value.node}"
        return f"{name}:{value.port}" if value.port else name

    def _node(self, node: NodeDef) -> NodeDef:
        values = self._body.inputs[node.name]
        waited = [f"^{self._prefix}{name}" for name in self._body.waited[node.name]]
        if not any(
            value.node in self._holding if value.node else self._given[value.port].is_inside
            for value in values
        ):
            waited += self._waited
        copy = NodeDef(
            name=f"{self._prefix}{node.name}",
            op=node.op,
            input=[*map(self._text, values), *waited],
            device=node.device or self._device,
        )
        for key, value in node.attr.items():
            copy.attr[key].CopyFrom(value)
        if "frame_name" in copy.attr:
            copy.attr["frame_name"].s = self._prefix.encode() + copy.attr["frame_name"].s
        if "_class" in copy.attr:
            beside = copy.attr["_class"].list
            labels = [each.decode("utf-8", "replace") for each in beside.s]
            names = [each.removeprefix(_COLOCATED) for each in labels]
            kept = [name for name in names if name in self._body.inputs]
            beside.s[:] = [f"{_COLOCATED}{self._prefix}{name}".encode() for name in kept]
        return copy
