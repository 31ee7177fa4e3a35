"""What nodes say of each other: who takes what, what is left out, in which order they are built.

TensorFlow saves and restores variables by nodes of the graph, and writes summaries by others. Both
are left out, with all that only they need or that waits for them: `Model.restore` reads
checkpoints, and what a graph saves under which name is read off its nodes.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from flowbook.graph.model.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from flowbook.tensorflow.messages_pb2 import DataType, NodeDef

LEFT_OUT = {
    "AudioSummary",
    "AudioSummaryV2",
    "HistogramSummary",
    "ImageSummary",
    "MergeSummary",
    "MergeV2Checkpoints",
    "Restore",
    "RestoreSlice",
    "RestoreV2",
    "Save",
    "SaveSlices",
    "SaveV2",
    "ScalarSummary",
    "ShardedFilename",
    "ShardedFilespec",
    "TensorSummary",
    "TensorSummaryV2",
}
# What a saver makes names of files and of tensors with, and may leave.
_PREPARING = {
    "Const",
    "DisableCopyOnRead",
    "Identity",
    "Pack",
    "Placeholder",
    "PlaceholderWithDefault",
    "ReadVariableOp",
    "Select",
    "StaticRegexFullMatch",
    "StringJoin",
}

NEXT = {"NextIteration", "RefNextIteration"}
MERGES = {"Merge", "RefMerge"}
PLACEHOLDERS = {"Placeholder", "PlaceholderV2", "PlaceholderWithDefault"}
VARIABLES = {"Variable", "VariableV2", "VarHandleOp"}
ASSIGNMENTS = {"Assign", "AssignVariableOp"}
# What gives on a reference, or a handle, that it takes first.
PASSING = {"Identity", "RefIdentity", "Enter", "RefEnter", "Switch", "RefSwitch", *ASSIGNMENTS}


class Source(NamedTuple):
    """An output of a node."""

    node: str
    port: int


class Taken(NamedTuple):
    """What a node takes: values, in their order, and the nodes that it waits for."""

    values: list[Source]
    waited: list[str]


class Nodes:
    """The nodes of a graph, by name.

    Args:
        nodes: these; none names a function.

    Raises:
        InvalidArgumentError: if two have one name, or one takes what there is not.
    """

    def __init__(self, nodes: Sequence[NodeDef]) -> None:
        self.protos: dict[str, NodeDef] = {node.name: node for node in nodes}
        if len(self.protos) != len(nodes):
            [(name, _), *_] = Counter(node.name for node in nodes).most_common(1)
            raise InvalidArgumentError(f"the graph has several nodes named {name!r}")
        self.taken = {node.name: self._taken(node) for node in nodes}
        self.consumers: dict[str, list[str]] = {name: [] for name in self.protos}
        for name, taken in self.taken.items():
            for source in dict.fromkeys((*(s.node for s in taken.values), *taken.waited)):
                self.consumers[source].append(name)

    def _taken(self, node: NodeDef) -> Taken:
        found = Taken([], [])
        for text in node.input:
            name, _, port = text.removeprefix("^").partition(":")
            if name not in self.protos:
                raise InvalidArgumentError(
                    f"the node {node.name!r} takes {name!r}, which is no node"
                )
            if text.startswith("^"):
                found.waited.append(name)
            elif port and not port.isdecimal():
                raise InvalidArgumentError(f"the node {node.name!r} takes {text!r}")
            else:
                found.values.append(Source(name, int(port or 0)))
        return found

    def variable_behind(self, source: Source) -> str | None:
        """The variable that a reference or a handle leads to; None if it leads to none."""
        return self.behind(source, VARIABLES)

    def behind(self, source: Source, types: AbstractSet[str]) -> str | None:
        """The node of some types that a reference or a handle leads to, if it leads to one."""
        name: str | None = source.node
        for _ in range(len(self.protos)):
            if name is None or self.protos[name].op in types:
                return name
            values = self.taken[name].values
            is_passed = self.protos[name].op in PASSING and bool(values)
            name = values[0].node if is_passed else None
        return None

    def left_out(self) -> set[str]:
        """The nodes that are not built."""
        found = {name for name, node in self.protos.items() if node.op in LEFT_OUT}
        stack = list(found)
        while stack:
            more = [c for c in self.consumers[stack.pop()] if c not in found]
            found.update(more)
            stack += more
        stack = list(found)
        while stack:
            for name in self._sources(stack.pop()):
                is_preparing = self.protos[name].op in _PREPARING and name not in found
                if is_preparing and all(c in found for c in self.consumers[name]):
                    found.add(name)
                    stack.append(name)
        return found

    def needed(self, names: Iterable[str], cut: Iterable[str]) -> set[str]:
        """The nodes that some need, with them; those of the cut need nothing."""
        cut, stack = set(cut), list(names)
        found = set(stack)
        for name in stack:
            if name not in self.protos:
                raise NotFoundError(f"the graph has no node {name!r}")
        while stack:
            name = stack.pop()
            more = [] if name in cut else [n for n in self._sources(name) if n not in found]
            found.update(more)
            stack += more
        return found

    def _sources(self, name: str) -> list[str]:
        taken = self.taken[name]
        return list(dict.fromkeys((*(s.node for s in taken.values), *taken.waited)))

    def check_known(self, names: Iterable[str], types: AbstractSet[str]) -> None:
        """Refuse a graph for all types of operations without a translation, at once.

        Raises:
            UnimplementedError: with each type, how many nodes are of it, and one of their names.
        """
        missing: dict[str, list[str]] = {}
        for name in names:
            if self.protos[name].op not in types:
                missing.setdefault(self.protos[name].op, []).append(name)
        if missing:
            listed = ", ".join(
                f"{type} ({len(found)}, such as {min(found)!r})"
                for type, found in sorted(missing.items())
            )
            raise UnimplementedError(
                f"the graph uses operations of TensorFlow without a translation: {listed}",
                hint="load(model, outputs=[...]) reads only what these need",
            )

    def share_arrays(self, names: Iterable[str]) -> bool:
        """Whether arrays of tensors change in place, for gradients or stacks that refer to them."""
        return any(
            node.op == "TensorArrayGradV3"
            or (node.op == "StackV2" and node.attr["elem_type"].type == DataType.DT_RESOURCE)
            for node in map(self.protos.__getitem__, names)
        )

    def ordered(
        self, names: set[str], also: Mapping[str, Sequence[str]], cut: AbstractSet[str]
    ) -> list[str]:
        """The nodes in an order in which each has what it takes, but for loops' ways back.

        Args:
            names: which nodes.
            also: what nodes need besides what they take.
            cut: those that need nothing.

        Raises:
            InvalidArgumentError: if some wait for each other.
        """
        places = {name: place for place, name in enumerate(self.protos)}
        needs: dict[str, set[str]] = {}
        needed_by: dict[str, list[str]] = {name: [] for name in names}
        for name in names:
            sources = {*self._sources(name), *also.get(name, ())} & names
            if name in cut:
                sources = set()
            if self.protos[name].op in MERGES:
                sources = {s for s in sources if self.protos[s].op not in NEXT}
            needs[name] = sources
            for source in sources:
                needed_by[source].append(name)
        ready = [(places[name], name) for name in names if not needs[name]]
        heapq.heapify(ready)
        found = []
        while ready:
            _, name = heapq.heappop(ready)
            found.append(name)
            for consumer in needed_by[name]:
                needs[consumer].discard(name)
                if not needs[consumer]:
                    heapq.heappush(ready, (places[consumer], consumer))
        if len(found) < len(names):
            stuck = sorted(names - set(found))[:3]
            raise InvalidArgumentError(
                f"nodes of the graph wait for each other: {', '.join(stuck)}"
            )
        return found
