"""A graph as the browser gets it: whole and once, so that looking at it needs no kernel.

The bytes are as `packing.py` says; the header has every distinct text once (`strings`).
`labextension/src/core/payload.ts` reads it.

Everything is bounded: long texts are cut, large values stay out.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowbook.graph.building.graph import Graph
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin.called import telling_variable
from flowbook.graph.model.origin.site import Site
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import VARIABLE
from flowbook.widgets.graphs.flow_blocks import (
    BlockKind,
    Pictured,
    pictured,
    plain_name,
    shown_label,
)
from flowbook.widgets.graphs.name_tree import Ints, NameTree, name_tree
from flowbook.widgets.graphs.overlay import Note, Overlay
from flowbook.widgets.graphs.scope_edges import scope_edges, templates
from flowbook.widgets.graphs.setting_aside import aside
from flowbook.widgets.graphs.spine import spine
from flowbook.widgets.packing import packed
from flowbook.widgets.shown_text import bounded
from flowbook.widgets.tables import value_text

FORMAT = 3

_PLAIN, _SCOPE, _VARIABLE, _INPUT, _CONSTANT, _ARGUMENTS = range(6)  # Kinds, as in `payload.ts`.


@dataclass(frozen=True)
class Needed:
    """What a run needs, which stands out.

    Attributes:
        operations: those that would be executed.
        fed: those whose tensors are fed.
        fetched: those whose tensors are fetched, or that are targets.
    """

    operations: frozenset[Operation]
    fed: frozenset[Operation]
    fetched: frozenset[Operation]


def graph_payload(
    graph: Graph, needed: Needed | None = None, overlay: Overlay | None = None
) -> bytes:
    """The graph, compressed; alone, it is written once for all that show it in one state.

    Args:
        graph: the graph.
        needed: what stands out; None if nothing does.
        overlay: what is laid over it.
    """
    if needed is not None or overlay is not None:
        return _graph_payload(graph, needed, overlay)
    state = graph.version, graph.members.keeps
    known = _known.get(graph)
    if known is None or known[0] != state:
        known = _known[graph] = state, _graph_payload(graph, None, None)
    return known[1]


_State = tuple[int, int]  # Of a graph: what was built again and kept has other variables and cells.
_known: weakref.WeakKeyDictionary[Graph, tuple[_State, bytes]] = weakref.WeakKeyDictionary()


def _graph_payload(graph: Graph, needed: Needed | None, overlay: Overlay | None) -> bytes:
    with graph.lock:
        operations = with_retired(graph.operations)
        writer = _Writer()
        _write(writer, graph, operations, needed)
        if overlay is not None:
            _write_overlay(writer, operations, overlay)
    return writer.packed()


def with_retired(operations: Iterable[Operation]) -> list[Operation]:
    """The operations, and the redefined ones that they still refer to, in order."""
    found = dict.fromkeys(operations)
    stack = [source for op in found for source in _sources(op) if source.retired]
    while stack:
        operation = stack.pop()
        if operation not in found:
            found[operation] = None
            stack += _sources(operation)
    return sorted(found, key=lambda op: op.id)


def _sources(operation: Operation) -> list[Operation]:
    return [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]


def _write(
    writer: _Writer,
    graph: Graph,
    operations: list[Operation],
    needed: Needed | None,
) -> None:
    number = {op: i for i, op in enumerate(operations)}
    picture = pictured(operations)
    tree = name_tree([bounded(name) for name in picture.names])
    types = writer.texts(op.type for op in operations)
    tensors: dict[Tensor, int] = {}
    for op in operations:
        for tensor in op.outputs:
            tensors[tensor] = len(tensors)
    inputs = _lists([tensors[t] for t in op.inputs] for op in operations)
    controls = _lists([number[c] for c in op.control_inputs] for op in operations)
    owner = np.asarray([number[t.op] for t in tensors], np.int32)
    data = owner[inputs[1]] if len(tensors) else inputs[1]
    enters = np.repeat(np.arange(len(operations), dtype=np.int32), np.diff(inputs[0]))
    if picture.blocks:
        drawn = _lists([tensors[t] for t in picture.wires.get(op, op.inputs)] for op in operations)
        data = owner[drawn[1]]
        enters = np.repeat(np.arange(len(operations), dtype=np.int32), np.diff(drawn[0]))
        _write_flow(writer, tree, operations, picture, drawn)
    edges = scope_edges(tree, data, enters)
    kept = [number[op] for op in spine(operations)]

    writer.meta["operations"] = len(operations)
    writer.meta["marked"] = needed is not None
    writer.column("label", writer.texts(map(shown_label, tree.labels)))
    writer.column("parent", tree.parent)
    writer.column("own", tree.own)
    writer.column("type", types)
    writer.column("template", templates(tree, edges, types.tolist()))
    # A loop, a branch or a function is looked at for what lies in it: all of that stays.
    unseen = aside(tree, edges, kept) & ~np.isin(tree.parent, _whole(tree, picture))
    writer.column("aside", unseen.astype(np.uint8))
    writer.column("kind", _kinds(tree, operations, picture))
    writer.column("inputStart", inputs[0])
    writer.column("input", inputs[1])
    writer.column("controlStart", controls[0])
    writer.column("control", controls[1])
    writer.column("outputStart", _starts([len(op.outputs) for op in operations]))
    _write_tensors(writer, tensors)
    _write_details(writer, operations)
    _write_state(writer, graph, operations, needed)


def _whole(tree: NameTree, picture: Pictured) -> list[int]:
    """The scopes of loops, branches and functions."""
    whole = (BlockKind.LOOP, BlockKind.BRANCH, BlockKind.FUNCTION)
    found = [tree.scopes.get(path, -1) for path, b in picture.blocks.items() if b.kind in whole]
    return [scope for scope in found if scope >= 0]


def _write_flow(
    writer: _Writer,
    tree: NameTree,
    operations: list[Operation],
    picture: Pictured,
    drawn: tuple[Ints, Ints],
) -> None:
    """What there is to say of loops and branches.

    Nodes have names of their own that are not made of the labels around them; some operations are
    not drawn, and lines come from elsewhere than their inputs.
    """
    named = np.full(len(tree.parent), -1, np.int32)
    about = np.full(len(tree.parent) - len(operations), -1, np.int32)
    for i, (op, name) in enumerate(zip(operations, picture.names, strict=True)):
        if op.name != name:
            named[i] = writer.text(op.name)
    for path, node in tree.scopes.items():
        block = picture.blocks.get(path)
        name = plain_name(path) if block is None else block.name
        if name != path:
            named[node] = writer.text(name)
        if block is not None and block.about:
            about[node - len(operations)] = writer.text(block.about)
    writer.column("named", named)
    writer.column("about", about)
    writer.column("wireStart", drawn[0])
    writer.column("wire", drawn[1])
    if picture.bodies or picture.calls:
        body = np.full(len(tree.parent), -1, np.int32)
        for i, op in enumerate(operations):
            body[i] = (
                tree.scopes.get(picture.bodies.get(op, ""), -1) if op in picture.bodies else -1
            )
        for call, first in picture.calls.items():
            body[tree.scopes[call]] = tree.scopes[first]
        writer.column("body", body)
    writer.column("routing", np.asarray([op in picture.routing for op in operations], np.uint8))
    writer.column("round", np.asarray([op in picture.rounds for op in operations], np.uint8))


def _write_tensors(writer: _Writer, tensors: Iterable[Tensor]) -> None:
    """What each tensor holds, as text, and its size in bytes, -1 where that is open."""
    known: dict[Any, tuple[int, int]] = {}
    specs, sizes = [], []
    for tensor in tensors:
        key = tensor.dtype.name, tensor.shape.dims
        found = known.get(key)
        if found is None:
            elements, each = tensor.shape.size, tensor.dtype.size
            size = elements * each if elements is not None and each else -1
            found = known[key] = writer.text(f"{tensor.dtype.name} {tensor.shape}"), size
        specs.append(found[0])
        sizes.append(found[1])
    writer.column("spec", np.asarray(specs, np.int32))
    writer.column("bytes", np.asarray(sizes, np.float64))


def _write_details(writer: _Writer, operations: list[Operation]) -> None:
    """What the card of an operation says beside its neighbours."""
    sites: dict[Any, tuple[int, int]] = {}
    known: dict[Any, int] = {}
    places: list[int] = []
    sources: list[int] = []
    names: list[str] = []
    values: list[int] = []
    counts: list[int] = []
    for op in operations:
        place, source = _site(writer, op.site, sites)
        places.append(place)
        sources.append(source)
        before = len(names)
        for name, value in op.attributes.items():
            if not (isinstance(value, str) and not value):
                names.append(name)
                values.append(_value(writer, value, known))
        counts.append(len(names) - before)
    writer.column("variable", writer.texts(map(telling_variable, operations)))
    writer.column("place", np.asarray(places, np.int32))
    writer.column("source", np.asarray(sources, np.int32))
    writer.column("device", writer.texts(op.device for op in operations))
    writer.column("attributeStart", _starts(counts))
    writer.column("attributeName", writer.texts(names))
    writer.column("attributeValue", np.asarray(values, np.int32))
    parameters = [
        op.variable.shape.size or 0 if op.variable is not None and op.variable.trainable else 0
        for op in operations
    ]
    writer.column("parameters", np.asarray(parameters, np.float64))


def _value(writer: _Writer, value: Any, known: dict[Any, int]) -> int:
    """The text of an attribute; most have few values, and a Const's differs each time."""
    if isinstance(value, np.ndarray):
        return writer.text(value_text(value))
    key = type(value), value  # The type tells 1 from True.
    try:
        found = known.get(key)
    except TypeError:  # It cannot be hashed.
        return writer.text(value_text(value))
    if found is None:
        found = known[key] = writer.text(value_text(value))
    return found


def _site(writer: _Writer, site: Site, known: dict[Any, tuple[int, int]]) -> tuple[int, int]:
    """The place and the source line of a site; many operations share one."""
    key = id(site.code), site.offset, site.author  # To hash code objects takes longer.
    found = known.get(key)
    if found is None:
        found = known[key] = writer.text(site.place), writer.text(site.source)
    return found


def _write_state(
    writer: _Writer,
    graph: Graph,
    operations: list[Operation],
    needed: Needed | None,
) -> None:
    """What may change while the operations stay: staleness, and what stands out."""
    reasons = {
        item.operation: writer.text(f"{item.reason}; re-run {', '.join(item.cells)}")
        for item in graph.stale()
    }
    stale = [reasons.get(op, -1) for op in operations]
    writer.column("stale", np.asarray(stale, np.int32))
    writer.column("retired", np.asarray([op.retired for op in operations], np.uint8))
    if needed is not None:
        marks = [
            (op in needed.operations) | (op in needed.fed) << 1 | (op in needed.fetched) << 2
            for op in operations
        ]
        writer.column("needed", np.asarray(marks, np.uint8))


def _write_overlay(writer: _Writer, operations: list[Operation], overlay: Overlay) -> None:
    """What is laid over the picture; -1 where it says nothing of an operation."""
    names = [op.name for op in operations]

    def column(name: str, found: Mapping[str, float], kind: type) -> None:
        writer.column(name, np.asarray([found.get(each, -1) for each in names], kind))

    for i, colouring in enumerate(overlay.colourings):
        column(f"colour{i}", colouring.values, np.float64)
        if colouring.against:
            column(f"against{i}", colouring.against, np.float64)
    writer.meta["overlay"] = {
        "title": overlay.title,
        "colourings": [
            {"by": each.by, "unit": each.unit, "groups": [g._asdict() for g in each.groups]}
            for each in overlay.colourings
        ],
    }
    column("runsOn", overlay.places, np.int32)
    column("elsewhere", {n: writer.text(w) for n, w in overlay.differing.items()}, np.int32)
    _write_crossings(writer, operations, overlay)
    notes = [overlay.notes.get(name, ()) for name in names]
    writer.column("noteStart", _starts([len(each) for each in notes]))
    for part in Note._fields:
        texts = (getattr(note, part) for each in notes for note in each)
        writer.column(f"note{part.capitalize()}", writer.texts(texts))


def _write_crossings(writer: _Writer, operations: list[Operation], overlay: Overlay) -> None:
    """The tensors that go to other devices, each with the device and the bytes."""
    number = {tensor.name: i for i, tensor in enumerate(t for op in operations for t in op.outputs)}
    found = [(number[n], to, size) for (n, to), size in overlay.crossings.items() if n in number]
    writer.column("crossTensor", np.asarray([tensor for tensor, _, _ in found], np.int32))
    writer.column("crossTo", np.asarray([to for _, to, _ in found], np.int32))
    writer.column("crossBytes", np.asarray([size for _, _, size in found], np.float64))


def _kinds(
    tree: NameTree, operations: list[Operation], picture: Pictured
) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """What each is drawn as."""
    kinds = np.full(len(tree.parent), _SCOPE, np.uint8)
    kinds[: len(operations)] = [
        BlockKind.CALL if op in picture.bodies else _kind(op) for op in operations
    ]
    constants = np.zeros(len(tree.parent), np.int64)
    np.add.at(constants, tree.parent[: len(operations)], kinds[: len(operations)] == _CONSTANT)
    for i in np.flatnonzero(tree.own >= 0):
        scope, own = i + len(operations), tree.own[i]
        if kinds[own] in (_VARIABLE, BlockKind.CALL):
            kinds[scope] = kinds[own]
        elif constants[scope] + 1 == tree.count[scope]:
            kinds[scope] = _ARGUMENTS
    for path, block in picture.blocks.items():
        if path in tree.scopes:  # Not where its name was too long to be sent.
            kinds[tree.scopes[path]] = block.kind
    return kinds


def _kind(operation: Operation) -> int:
    if operation.op_def.owns == VARIABLE.name:
        return _VARIABLE
    if operation.op_def.must_be_fed:
        return _INPUT
    return _CONSTANT if operation.op_def.is_constant else _PLAIN


def _lists(lists: Iterable[list[int]]) -> tuple[Ints, Ints]:
    """Lists as one column, and where in it each begins."""
    flat: list[int] = []
    counts = []
    for each in lists:
        flat += each
        counts.append(len(each))
    return _starts(counts), np.asarray(flat, np.int32)


def _starts(counts: list[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int32)


class _Writer:
    """Collects texts and columns."""

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {"format": FORMAT}
        self._strings: dict[str, int] = {}
        self._columns: dict[str, np.ndarray[Any, Any]] = {}

    def text(self, text: str) -> int:
        """The number of a text, cut if it is long."""
        return self._strings.setdefault(bounded(text), len(self._strings))

    def texts(self, texts: Iterable[str]) -> Ints:
        """A column of texts."""
        known, text = self._strings, self.text
        return np.asarray([known[t] if t in known else text(t) for t in texts], np.int32)

    def column(self, name: str, values: np.ndarray[Any, Any]) -> None:
        """Add a column of int32, float64 or uint8."""
        self._columns[name] = values

    def packed(self) -> bytes:
        """Everything, compressed."""
        return packed({**self.meta, "strings": list(self._strings)}, self._columns)
