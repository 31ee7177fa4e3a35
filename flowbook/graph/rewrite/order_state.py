"""Edges that make reads and writes of one step deterministic (fixed on the pruned graph).

Which edges is a policy of the resource's kind (`touch.Order`). Of a variable, a read that no path
orders after a write sees the value from before it, and unordered writes go in the order of
construction; an edge that would close a cycle yields to the order of construction. What holds a
mutex goes after what lets go of it that was built before: in another order one might hold it and
wait for a write of one who waits for the mutex. Other kinds get none: what meets in a queue may
come in any order. But what is taken there may be what the step itself puts there: that counts as a
path, which no edge may turn into a cycle, unless it is put there behind what is taken. What acts
outside the graph goes in the order of construction.

In a graph with loops and branches such an edge lets nothing die: one waits until the other has
ended, or is dead. It joins what is in one frame. What is in an inner one is meant by all that
enters that, or by all that leaves it; `while_loop` sees to it that this is enough. A path through a
branch that is not taken, or a loop that does not go round, holds nobody up: where only such paths
lead from a write to a read, an edge does.

Where a graph has grown, what is there keeps its edges. What is new waits for it, or cannot follow.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterable
from operator import and_, or_

from flowbook.graph.model.context import Frame, frame_of, runs_in
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.touch import Access, Order, Touch
from flowbook.graph.rewrite.cse import is_there
from flowbook.graph.rewrite.subgraph import CannotFollow, Node, Subgraph

# What is done to each resource, by its key; of None, what is done outside the graph.
Touching = dict[ResourceKey | None, list[Node]]

# Nodes, and others that come after all of them.
_Ends = tuple[list[Node], list[Node]]


def order_state(graph: Subgraph) -> None:
    """Add the edges to the nodes' `after`, and bring the nodes into an order that obeys them.

    Raises:
        CannotFollow: if one would lead to what the graph begins with.
    """
    if not graph.touching:
        return
    writes: Touching = {}
    reads: Touching = {}
    turns: Touching = {}
    meeting: Touching = {}
    for node in graph.touching:
        access, order = node.op_def.access, node.order
        if access is Access.OUTSIDE:
            writes.setdefault(None, []).append(node)
        elif access is not None and order is Order.READS_FIRST:
            touching = writes if access is Access.WRITE else reads
            touching.setdefault(node.key, []).append(node)
        elif access is not None and order is Order.IN_TURN:
            turns.setdefault(node.key, []).append(node)
        elif access is Access.WAIT:
            meeting.setdefault(node.key, []).append(node)
    new = [write for key, chained in writes.items() if key is not None for write in chained]
    graph.bits.update({write: 1 << i for i, write in enumerate(new, len(graph.bits))})
    handed_on = _handed_on(meeting) if writes else []
    if graph.is_routed or turns or handed_on:
        chains = _Ordering(graph, handed_on).order(writes, reads, turns)
    else:
        chains = _order(graph, writes, reads)
    graph.last_write.update({key: chained[-1] for key, chained in chains.items() if chained})
    graph.reads.update({key: [*graph.reads.get(key, ()), *new] for key, new in reads.items()})


def _handed_on(meeting: Touching) -> list[tuple[Node, Node]]:
    """What puts something, or ends waits, and another node of the step that may take it.

    One of several resources, which the run chooses, has no key here: it may be any.
    """
    giving = {key: [n for n in nodes if _touch(n).gives] for key, nodes in meeting.items()}
    somewhere, anywhere = giving.get(None, []), list(itertools.chain(*giving.values()))
    return [
        (putting, taking)
        for key, nodes in meeting.items()
        for taking in nodes
        if _touch(taking).takes
        for putting in (anywhere if key is None else [*giving[key], *somewhere])
    ]


def _touch(node: Node) -> Touch:
    touch = node.op_def.touches
    assert touch is not None
    return touch


def _order(graph: Subgraph, writes: Touching, reads: Touching) -> Touching:
    """Add the edges where nothing branches; the writes in the order in which they go."""
    chains: Touching = {}
    for key in {**writes, **reads}:
        there = [graph.last_write[key]] if key in graph.last_write else []
        chains[key] = [*there, *writes.get(key, ())]
        for earlier, later in itertools.pairwise(chains[key]):
            if earlier.operation.id > later.operation.id:
                raise CannotFollow
            later.after += (earlier,)
    if not graph.bits:
        return chains
    _reach(graph)
    for key, (first, *_) in writes.items():
        there = [n for read in graph.reads.get(key, ()) for n in graph.nodes_for(read.operation)]
        first.after = tuple(dict.fromkeys((*first.after, *there)))
    backward: list[tuple[Node, Node]] = []
    for key, reading in reads.items():
        chained = chains[key]
        for read in reading:
            reached = graph.reached.get(read, 0)
            seen = [i for i, w in enumerate(chained) if reached & graph.bits[w]]
            for write in chained[seen[-1] + 1 if seen else 0 :]:
                if write.number >= 0:
                    if not is_there(graph, read):
                        raise CannotFollow
                    break  # What it is merged into is read before the write.
                if read.operation.id < write.operation.id:
                    write.after += (read,)
                    break  # The later ones follow this one.
                backward.append((read, write))
    if backward:
        _insert_backward(graph, backward)
        graph.sort(lambda node: node.operation.id)
    return chains


def _reach(graph: Subgraph) -> None:
    """Find which writes each new node surely runs after."""
    bits, reached, producer = graph.bits, graph.reached, graph.producer
    for node in graph.new:
        found = bits.get(node, 0)
        if node.inputs:
            # A Merge may run after any of those that it takes from alone.
            join = and_ if node.op_def.fires_on_any else or_
            sources = [reached.get(producer[v], 0) if v in producer else 0 for v in node.inputs]
            found |= functools.reduce(join, sources)
        for other in (*node.after, *node.behind):
            found |= reached.get(other, 0)
        if found:
            reached[node] = found


def _insert_backward(graph: Subgraph, edges: list[tuple[Node, Node]]) -> None:
    """Let reads that were built after a write, but are not ordered after it, precede it.

    Args:
        graph: the graph.
        edges: such reads and writes. A read precedes the first write of its variable that it can
            precede without closing a cycle, and so all later ones.
    """
    successors = _successors(graph)
    done: set[tuple[Node, ResourceKey | None]] = set()
    for read, write in sorted(edges, key=lambda e: (e[0].operation.id, e[1].operation.id)):
        placed = (read, write.key)
        if placed in done or _leads_to(write, (read,), successors):
            continue
        done.add(placed)  # The later writes follow this one.
        write.after += (read,)
        successors.setdefault(read, []).append(write)


def _leads_to(start: Node, goals: Collection[Node], successors: dict[Node, list[Node]]) -> bool:
    stack, seen = [start], {start}
    while stack:
        node = stack.pop()
        if node in goals:
            return True
        for other in successors.get(node, ()):
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return False


def _successors(graph: Subgraph) -> dict[Node, list[Node]]:
    """For every node the new ones that take something of it, or wait for it."""
    successors: dict[Node, list[Node]] = {}
    for node in graph.new:
        for value in node.inputs:
            if value in graph.producer:
                successors.setdefault(graph.producer[value], []).append(node)
        for other in (*node.after, *node.behind):
            successors.setdefault(other, []).append(node)
    return successors


class _Ordering:
    """Orders what touches a resource where there are loops and branches, turns or queues.

    Args:
        graph: the graph.
        handed_on: a node, and another that may wait for it with no edge between.
    """

    def __init__(self, graph: Subgraph, handed_on: Iterable[tuple[Node, Node]]) -> None:
        self._graph = graph
        self._successors = _successors(graph)
        self._entering: dict[Frame | None, list[Node]] = {}
        self._leaving: dict[Frame | None, list[Node]] = {}
        self._is_changed = False
        for node in graph.nodes:
            if node.op_def.retag is Retag.PUSH:
                self._entering.setdefault(frame_of(node.operation.context), []).append(node)
            elif node.op_def.retag is Retag.POP:
                left = frame_of(runs_in(node.operation))
                self._leaving.setdefault(left, []).append(node)
        # What enters a loop may be waited for in each iteration, and so before the loop is left.
        for frame, entering in self._entering.items():
            for node in entering:
                self._successors.setdefault(node, []).extend(self._leaving.get(frame, ()))
        for putting, taking in handed_on:
            self._follow(self._between([putting], taking) or ())

    def order(
        self,
        writes: Touching,
        reads: Touching,
        turns: Touching,
    ) -> Touching:
        """Add the edges, and bring the nodes into an order that obeys them.

        Returns:
            The writes in the order in which they go.
        """
        chains = {key: self._chain(writing) for key, writing in writes.items()}
        for touching in turns.values():
            self._take_turns(self._held(touching))
        bits, reached = self._graph.bits, self._graph.reached
        if bits:
            _reach(self._graph)
        for key, chained in chains.items():
            for read in reads.get(key, ()):
                seen = [i for i, w in enumerate(chained) if reached.get(read, 0) & bits[w]]
                behind: Node | None = None
                for write in chained[seen[-1] + 1 if seen else 0 :]:
                    if self._put_before([read], write):
                        break  # The later ones follow this one.
                    behind = write
                if behind is not None:
                    self._put_before([behind], read)
        if self._is_changed:
            self._graph.sort(lambda node: node.operation.id)
        return chains

    def _chain(self, nodes: list[Node]) -> list[Node]:
        """Have some nodes go one after the other; they, in the order in which they do."""
        return self._take_turns({node: [node] for node in nodes})

    def _held(self, touching: list[Node]) -> dict[Node, list[Node]]:
        """For each node that holds a resource what ends that; the node itself if nothing does."""
        held: dict[Node, list[Node]] = {n: [] for n in touching if _holds(n)}
        for node in touching:
            if not _holds(node):
                for holding in self._given_by(node, held):
                    held[holding].append(node)
        return {holding: ends or [holding] for holding, ends in held.items()}

    def _given_by(self, node: Node, held: Collection[Node]) -> list[Node]:
        """Those of some nodes that gave what a node takes, on whatever ways."""
        found: list[Node] = []
        stack, seen = [node], {node}
        while stack:
            for value in stack.pop().inputs:
                source = self._graph.producer.get(value)
                if source is None or source in seen:
                    continue
                seen.add(source)
                (found if source in held else stack).append(source)
        return found

    def _take_turns(self, held: dict[Node, list[Node]]) -> list[Node]:
        """Have each of some nodes go after the ends of those before it, as it was built.

        Where that would close a cycle it goes before them, and where that would, too, one holds
        what another asks for, and no order is right.

        Returns:
            The nodes in the order in which they go.
        """
        turns: list[Node] = []
        for node, ends in held.items():
            place = len(turns)
            while place and not self._put_before(held[turns[place - 1]], node):
                place -= 1
                self._put_before(ends, turns[place])
            turns.insert(place, node)
        return turns

    def _put_before(self, earlier: list[Node], later: Node) -> bool:
        """Whether some nodes could be put before another one."""
        between = self._between(earlier, later)
        if between is None:
            return False
        for sources, targets in between:
            for target in targets:
                target.behind = tuple(dict.fromkeys((*target.behind, *sources)))
                self._is_changed |= any(s.operation.id > target.operation.id for s in sources)
        self._follow(between)
        return True

    def _between(self, earlier: list[Node], later: Node) -> list[_Ends] | None:
        """What edges join that put some nodes before another one; None if they close a cycle."""
        around = _frames_around(later)
        sources: dict[Frame | None, list[Node]] = {}
        for node in earlier:
            shared = next(f for f in _frames_around(node) if f in around)
            sources.setdefault(shared, []).extend(self._outermost(node, shared, self._leaving))
        edges = [(s, self._outermost(later, f, self._entering)) for f, s in sources.items()]
        for nodes, targets in edges:
            if any(_leads_to(target, {*nodes}, self._successors) for target in targets):
                return None
        return edges

    def _follow(self, edges: Iterable[_Ends]) -> None:
        for sources, targets in edges:
            for source in sources:
                self._successors.setdefault(source, []).extend(targets)

    @staticmethod
    def _outermost(
        node: Node, shared: Frame | None, ends: dict[Frame | None, list[Node]]
    ) -> list[Node]:
        """The node itself, if it is in the frame, or else the ends of the loop there around it."""
        inner: Frame | None = None
        for frame in _frames_around(node):
            if frame is shared:
                break
            inner = frame
        return [node] if inner is None else ends.get(inner, [])


def _holds(node: Node) -> bool:
    """Whether it has what it touches until something lets go of that."""
    touch = node.op_def.touches
    return touch is not None and touch.holds


def _frames_around(node: Node) -> list[Frame | None]:
    """The frame that a node runs in, and those around that; None is the outermost."""
    frame = frame_of(runs_in(node.operation))
    found: list[Frame | None] = [frame]
    while frame is not None:
        frame = frame_of(frame.outer)
        found.append(frame)
    return found
