"""One part for each device, and a transfer wherever a value goes to another (white paper, 3.2.2).

A value that is used on other devices than it is made on is sent once to each of these, however many
nodes use it there: a Send after the node that makes it, a Recv before the first that uses it. An
order between nodes on two devices is a transfer of an empty value. A value that is dead is sent
too: who receives it is of a branch not taken.

A loop whose nodes lie on several devices goes round on each of them. One that has no variable of
the loop gets a control loop instead: a variable that nobody reads, whose Switch takes the loop's
predicate. So each iteration costs one small transfer to each further device. What is received in a
loop waits for the Merge of its iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from flowbook.exec.plan.drafts import (
    Draft,
    Piece,
    Spec,
    compiled,
    host_args_of,
    is_apart,
    specs_of,
)
from flowbook.exec.plan.numbering import part_of
from flowbook.exec.plan.outline import Outline
from flowbook.exec.plan.program import PORT, PlanNode, Program
from flowbook.graph.control_flow.routing import enter_op, merge_op, next_iteration_op, switch_op
from flowbook.graph.model.dtypes import DType, float32, int32, uint16
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.shape import SCALAR, Shape
from flowbook.graph.ops.basis.constants import const
from flowbook.graph.ops.communicate.transfer import (
    fetch_op,
    fill_op,
    receive_op,
    send_op,
    truncate_op,
)

_EMPTY = np.zeros(0, np.bool_)
_EMPTY_SHAPE = Shape.of((0,))


def partition(
    program: Program,
    devices: Sequence[str],
    late: Mapping[tuple[int, str], int] | None = None,
    is_lossy: Callable[[int], bool] = lambda value: False,
) -> Program:
    """A program of one part, as one of a part for each device that its nodes run on.

    Args:
        program: what runs.
        devices: the device of each node; the first part is that of the first node's.
        late: for values, each with the device that receives it late, the node there that its Recv
            waits for.
        is_lossy: whether of a value, if it is float32, half of the bits may go over alone.

    Raises:
        UnimplementedError: if a loop that has no one condition lies on several devices.
    """
    (part,) = program.parts
    used = set(devices) or {part.device}
    if len(used) == 1 and not any(map(is_apart, used)):
        return program._replace(parts=(part._replace(device=used.pop()),))
    return _Partition(program, devices, late or {}, is_lossy).made()


class _Partition:
    """One program, taken apart."""

    def __init__(
        self,
        program: Program,
        devices: Sequence[str],
        late: Mapping[tuple[int, str], int],
        is_lossy: Callable[[int], bool],
    ) -> None:
        (self._part,) = program.parts
        self._program = program
        self._devices = devices
        self._late = late
        self._is_lossy = is_lossy
        self._halves: dict[int, Draft] = {}
        self._nodes = self._part.nodes
        self._blocks = list(self._part.block.walk())
        self._frame = {block.frame: place for place, block in enumerate(self._blocks)}
        self._outer: dict[int, int] = {}
        self._frame_of: list[int] = []
        for place, block in enumerate(self._blocks):
            self._frame_of += [place] * len(block.nodes)
            self._outer.update((self._frame[inner.frame], place) for inner in block.blocks)
        self._producer = {v: i for i, node in enumerate(self._nodes) for v in node.outputs}
        self._specs = specs_of(program)
        is_routed = any(op_keyed(node.type).routes for node in self._nodes)
        self._outline = Outline(self._part) if is_routed else None
        self._count = self._part.values
        self._port = self._new(PORT.dtype, PORT.shape, PORT.name)
        self._pieces = {device: Piece(device) for device in devices or [self._part.device]}
        self._drafts: list[Draft] = []
        self._sources: dict[int, Piece] = {}
        self._tokens: dict[tuple[int, bool], Draft] = {}
        self._orders: dict[tuple[int, bool, str], Draft] = {}
        self._dead: set[int] = set()

    def made(self) -> Program:
        """The program of all parts."""
        self._drafts = [Draft(node) for node in self._nodes]
        for draft, device in zip(self._drafts, self._devices, strict=True):
            self._sources[id(draft)] = self._pieces[device]
        # What goes round is there before what is received in it.
        for (device, frame), merge in self._rounds().items():
            self._pieces[device].rounds[frame] = self._drafts[merge]
        for index, draft in enumerate(self._drafts):
            self._add(index, draft)
        for index in self._part.targets:
            self._pieces[self._devices[index]].targets.append(self._drafts[index])
        pieces = self._pieces.values()
        first = next((piece for piece in pieces if not piece.is_apart), next(iter(pieces)))
        for place, value in enumerate(self._part.fetches):
            is_there = self._is_there(value)
            piece = first if is_there else self._pieces[self._devices[self._producer[value]]]
            piece.fetches.append((place, value, self._part.ownership[place]))
        return self._joined()

    # Nodes

    def _add(self, index: int, draft: Draft) -> None:
        """Add a node to its piece, and what it takes from others."""
        node, device, frame = draft.node, self._devices[index], self._frame_of[index]
        piece = self._pieces[device]
        inputs = [
            (self._hosted if piece.is_apart and on_host else self._received)(value, piece, frame)
            for value, on_host in zip(node.inputs, host_args_of(node), strict=True)
        ]
        draft.node = node._replace(inputs=tuple(inputs))
        for other in node.after:
            draft.after.append(self._waited(other, piece, frame, kills=True))
        for other in node.behind:
            draft.behind.append(self._waited(other, piece, frame, kills=False))
        self._place(piece, frame, draft)

    def _place(self, piece: Piece, frame: int, draft: Draft) -> None:
        """Put a draft at the end of what a piece has in a frame."""
        self._take_part(piece, frame)
        piece.drafts[frame].append(draft)

    def _take_part(self, piece: Piece, frame: int) -> None:
        """Have a device go round a loop."""
        if frame not in piece.drafts:
            piece.drafts[frame] = []
            if frame not in piece.rounds:
                self._control(piece, frame)

    def _received(self, value: int, piece: Piece, frame: int) -> int:
        """The number that a value has on a device, which may be another one than its own."""
        if self._is_there(value):
            return value
        producer = self._producer[value]
        if self._devices[producer] == piece.device:
            return value
        found = piece.received.get(value)
        if found is None:
            node = self._nodes[producer]
            if op_keyed(node.type).retag is Retag.PUSH and node.attributes["is_constant"]:
                draft = self._entered(node, self._frame_of[producer], piece)
            else:
                draft = self._sent_over(value, self._drafts[producer], piece, frame)
            found = piece.received[value] = draft.node.outputs[0]
        return found

    def _hosted(self, value: int, piece: Piece, frame: int) -> int:
        """The number that a value has in host memory, on a device whose memory is another."""
        found = piece.hosted.get(value)
        if found is None:
            if self._is_there(value):
                found = self._new(*self._specs[value])
            elif (
                self._devices[self._producer[value]] != piece.device
                and value not in piece.received
                and op_keyed(self._nodes[self._producer[value]].type).retag is not Retag.PUSH
            ):
                maker = self._drafts[self._producer[value]]
                draft = self._transferred(value, maker, piece, frame, on_host=True)
                found = draft.node.outputs[0]
            else:
                found = self._fetched(self._received(value, piece, frame), piece, frame)
            piece.hosted[value] = found
        return found

    def _fetched(self, value: int, piece: Piece, frame: int) -> int:
        """Bring a value of a device into host memory there."""
        dtype, shape, name = self._specs[value]
        found = self._new(dtype, shape, name)
        outputs, name = {found: (dtype, shape)}, f"{name}/fetch"
        fetch = compiled(fetch_op, (self._port, value), outputs, name)
        self._place(piece, frame, Draft(fetch))
        return found

    def _is_there(self, value: int) -> bool:
        """Whether a value is there before the step, on every device."""
        return value not in self._producer or value in self._part.constants

    def _entered(self, node: PlanNode, frame: int, piece: Piece) -> Draft:
        """What enters a loop and stays as it is enters it on each device."""
        value = self._received(node.inputs[0], piece, frame)
        output = self._new(*self._specs[node.outputs[0]])
        draft = Draft(node._replace(inputs=(value,), outputs=(output,), sources=()))
        self._place(piece, frame, draft)
        return draft

    def _sent_over(self, value: int, producer: Draft, piece: Piece, frame: int) -> Draft:
        """Send a value, or half of its bits, right after what makes it; the node that gives it."""
        dtype, shape, name = spec = self._specs[value]
        is_half = dtype is float32 and self._is_lossy(value)
        sent = self._half(value, producer, frame) if is_half else producer
        received = self._transferred(sent.node.outputs[0] if is_half else value, sent, piece, frame)
        delaying = self._late.get((value, piece.device)) if not frame else None
        if delaying is not None:
            # It may be of a branch that is not taken.
            waited = received.after if self._outline is None else received.behind
            waited.append(self._drafts[delaying])
        if not is_half:
            return received
        outputs = {self._new(*spec): (dtype, shape)}
        filled = Draft(compiled(fill_op, received.node.outputs, outputs, f"{name}/fill"))
        self._place(piece, frame, filled)
        return filled

    def _half(self, value: int, producer: Draft, frame: int) -> Draft:
        """What makes half of the bits of a value, once for all devices."""
        found = self._halves.get(value)
        if found is None:
            _, shape, name = self._specs[value]
            bits = self._new(uint16, shape, f"{name}/half")
            outputs = {bits: (uint16, shape)}
            found = Draft(compiled(truncate_op, (value,), outputs, f"{name}/truncate"))
            self._halves[value] = found
            if self._may_be_dead(value):
                self._dead.add(bits)
            self._follow(producer, found, frame)
        return found

    def _transferred(
        self, value: int, producer: Draft, piece: Piece, frame: int, on_host: bool = False
    ) -> Draft:
        """Send a value right after what makes it; the node that receives it."""
        dtype, shape, name = self._specs[value]
        source = self._sources[id(producer)]
        key = f"{source.device};{piece.device};{name};{value}{';host' if on_host else ''}"
        sent = Draft(compiled(send_op, (self._port, value), (), f"{name}/send", key=key))
        self._follow(producer, sent, frame)
        found = {self._new(dtype, shape, name): (dtype, shape)}
        received = Draft(
            compiled(
                receive_op,
                (self._port,),
                found,
                f"{name}/recv",
                key=key,
                source=source.device,
                dtype=dtype,
                on_host=on_host,
                may_be_dead=self._may_be_dead(value),
            )
        )
        self._place(piece, frame, received)
        if frame:
            received.after.append(piece.rounds[frame])
        return received

    def _may_be_dead(self, value: int) -> bool:
        """Whether what is sent may be of a branch that was not taken, or not in every iteration."""
        if self._outline is None:
            return False
        producer = self._producer.get(value)
        if producer is not None and op_keyed(self._nodes[producer].type).retag is Retag.PUSH:
            return True
        return value in self._dead or bool(self._outline.guards.get(value))

    def _may_not_run(self, index: int) -> bool:
        """Whether a node may be of a branch that was not taken."""
        if self._outline is None:
            return False
        if op_keyed(self._nodes[index].type).retag is Retag.POP:
            return any(self._may_be_dead(value) for value in self._nodes[index].outputs)
        layout = self._outline.layouts[self._blocks[self._frame_of[index]].frame]
        return bool(layout.items[layout.item_of[index]].guard)

    def _follow(self, draft: Draft, following: Draft, frame: int) -> None:
        """Add to a draft's piece what takes what it gives, in the frame where that is."""
        piece = self._sources[id(following)] = self._sources[id(draft)]
        if op_keyed(draft.node.type).retag in (Retag.PUSH, Retag.POP):
            self._place(piece, frame, following)
        else:
            draft.follows.append(following)

    def _waited(self, other: int, piece: Piece, frame: int, kills: bool) -> Draft:
        """What to wait for on a device where a node is waited for."""
        if self._devices[other] == piece.device:
            return self._drafts[other]
        found = self._orders.get((other, kills, piece.device))
        if found is None:
            waited = self._drafts[other]
            token = self._tokens.get((other, kills))
            if token is None:
                name = f"{waited.node.name}/done"
                token = self._tokens[other, kills] = self._empty(name)
                (token.after if kills else token.behind).append(waited)
                if kills and self._may_not_run(other):
                    self._dead.add(token.node.outputs[0])
                self._follow(waited, token, frame)
            found = self._transferred(token.node.outputs[0], token, piece, frame)
            self._orders[other, kills, piece.device] = found
        return found

    def _empty(self, name: str) -> Draft:
        """A node that gives an empty value."""
        value = self._new(bool_, _EMPTY_SHAPE, name)
        return Draft(
            compiled(const, (), {value: (bool_, _EMPTY_SHAPE)}, name, value=_EMPTY, dtype=bool_)
        )

    # Loops

    def _rounds(self) -> dict[tuple[str, int], int]:
        """For each device and frame in which it has a variable of the loop the Merge of one."""
        found: dict[tuple[str, int], int] = {}
        for index, node in enumerate(self._nodes):
            frame, device = self._frame_of[index], self._devices[index]
            fires_on_any = op_keyed(node.type).fires_on_any
            if frame and fires_on_any and (device, frame) not in found:
                sources = [self._producer.get(v) for v in node.inputs]
                closes = [s for s in sources if s is not None and s > index]
                if any(self._goes_round(s) and self._devices[s] == device for s in closes):
                    found[device, frame] = index
        return found

    def _control(self, piece: Piece, frame: int) -> None:
        """Have a device that has no variable of a loop go round it, by the loop's predicate."""
        outer, block = self._outer[frame], self._blocks[frame]
        self._take_part(piece, outer)
        name = f"{block.frame}/control"
        start = self._empty(name)
        if outer:
            start.after.append(piece.rounds[outer])
        spec = bool_, _EMPTY_SHAPE
        entered, merged, left, right, again = [self._new(*spec, name) for _ in range(5)]
        which = self._new(int32, SCALAR, name)
        enter = compiled(
            enter_op,
            start.node.outputs,
            {entered: spec},
            name,
            frame_name=block.frame,
            is_constant=False,
            parallel_iterations=block.parallel_iterations,
            shape=None,
        )
        merges = {merged: spec, which: (int32, SCALAR)}
        merge = Draft(compiled(merge_op, (entered, again), merges, name))
        piece.drafts[outer] += [start, Draft(enter)]
        piece.drafts[frame].append(merge)
        piece.rounds[frame] = merge
        predicate = self._received(self._predicate(frame), piece, frame)
        sides = {left: spec, right: spec}
        switch = compiled(switch_op, (merged, predicate), sides, name)
        following = compiled(next_iteration_op, (right,), {again: spec}, name)
        piece.drafts[frame] += [Draft(switch), Draft(following)]

    def _goes_round(self, index: int) -> bool:
        """Whether a node's outputs go into the next iteration."""
        return op_keyed(self._nodes[index].type).retag is Retag.INCREMENT

    def _predicate(self, frame: int) -> int:
        """The value that says whether a loop goes on."""
        merged = {
            node.outputs[0]
            for index, node in enumerate(self._nodes)
            if self._frame_of[index] == frame
            and op_keyed(node.type).fires_on_any
            and any(
                (s := self._producer.get(v)) is not None and self._goes_round(s)
                for v in node.inputs
            )
        }
        found = {
            node.inputs[-1]
            for node in self._nodes
            if op_keyed(node.type).gives_dead and node.inputs[0] in merged
        }
        if len(found) != 1:
            raise UnimplementedError(
                f"the loop {self._blocks[frame].frame!r} lies on several devices, and has not one "
                "condition for all of its variables",
                hint="build it in one fb.device scope",
            )
        return found.pop()

    # What becomes of it

    def _new(self, dtype: DType, shape: Shape, name: str) -> int:
        self._specs[self._count] = Spec(dtype, shape, name)
        self._count += 1
        return self._count - 1

    def _joined(self) -> Program:
        fetches: dict[int, tuple[int, int]] = {}
        parts = []
        for number, piece in enumerate(self._pieces.values()):
            parts.append(part_of(piece, self._program, self._port))
            fetches.update((p, (number, i)) for i, (p, _, _) in enumerate(piece.fetches))
        return Program(
            (*self._program.feeds, PORT),
            tuple([fetches[place] for place in range(len(fetches))]),
            tuple(parts),
        )
