"""Where the operations of a session run: prepared so, explained, and changed between two steps."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from flowbook.exec.devices.device import Device, DeviceDescription
from flowbook.exec.engine.atomic.acting import Acting
from flowbook.exec.local.kept_programs import Programs
from flowbook.exec.placement.decisions import Placement, Settled
from flowbook.exec.placement.measurements import Measured, Measurements
from flowbook.exec.placement.search import Search
from flowbook.exec.plan.explanation import Explanation
from flowbook.exec.plan.pipeline import Growing, Lossy, Prepared, grow
from flowbook.exec.plan.rehearsal import explain, explain_found
from flowbook.exec.plan.replacing import MovedState, Replacement, settle
from flowbook.exec.resources.gate import all_closed
from flowbook.exec.resources.session_stores import SessionStores
from flowbook.exec.resources.store import usable_on
from flowbook.exec.resources.variable import VariableResource
from flowbook.exec.signature.signature import Signature
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor


class Placing:
    """Places the operations of one session; see `Placer` for what the session may ask for.

    Args:
        graph: the session's.
        devices: those that it has.
        stores: where its resources live.
        programs: what is prepared.
        is_soft: whether a request that cannot be met is no error.
        lossy: of which tensors, by name or not, half of the bits may go to other devices; or
            whether of all.

    Attributes:
        devices: those that it has, by name.
    """

    def __init__(
        self,
        graph: Graph,
        devices: Sequence[Device],
        stores: SessionStores,
        programs: Programs,
        is_soft: bool,
        lossy: bool | Sequence[Tensor | str],
    ) -> None:
        self.devices = {device.name: device for device in devices}
        self._graph = graph
        self._all = devices
        self._stores = stores
        self._programs = programs
        self._is_soft = is_soft
        self._lossy = lossy
        self._measured = Measurements()
        self._moved: weakref.WeakKeyDictionary[Operation, Device] = weakref.WeakKeyDictionary()

    @property
    def _settled(self) -> Settled:
        """What holds already."""
        with self._programs.lock:
            moved = dict(self._moved) if self._moved else {}
            return Settled(dict(self._stores.homes), moved, self._is_soft)

    @property
    def _lossy_tensors(self) -> Lossy:
        """What may be sent with half of its bits; what is not built yet is not among it."""
        if isinstance(self._lossy, bool):
            return self._lossy
        graph = self._graph
        named = [each for each in self._lossy if not isinstance(each, str)]
        for name in [each for each in self._lossy if isinstance(each, str)]:
            operation, _, port = name.partition(":")
            if graph.has_operation(operation):
                named.append(graph.get_tensor_by_name(f"{operation}:{port or 0}"))
        return named

    # Preparing

    def grown(self, signature: Signature, base: Growing | None) -> Growing:
        """A signature's program, from what it begins with or from nothing; see `grow`."""
        return grow(signature, self._all, base, self._settled, self._lossy_tensors)

    def settle(self, prepared: Prepared) -> Mapping[ResourceKey, Device]:
        """Have the resources that a prepared signature touches live where it was placed.

        Returns:
            Those that live in the memory of another device, and where they are to live. If there
            are any, nothing is done: they have to `move` first.
        """
        if len(self._all) == 1:
            return {}
        homes = {
            node.key: self.devices[part.device]
            for part in prepared.program.parts
            for node in part.nodes
            if node.key is not None
        }
        away = {key: home for key, home in homes.items() if self._stores.is_elsewhere(key, home)}
        if not away:
            for key, home in homes.items():
                self._stores.settle(key, home)
        return away

    def is_misplaced(self, prepared: Prepared) -> bool:
        """Whether something of a named container lives in other memory than it was prepared for.

        There a session puts what has no value, and others may have been prepared before.
        """
        place = prepared.placement.device_of
        owners = [op for op in prepared.stateful if op.key is not None and op.key.container]
        return any(not usable_on(self._stores.find(op.key), place(op)) for op in owners if op.key)

    def move(self, homes: Mapping[ResourceKey, Device]) -> None:
        """Have resources live on other devices, and what was prepared with them be dropped."""
        with self._between_steps(homes, None):
            Acting().whole(self._move, homes, homes.keys())

    def fetched(self, values: Sequence[Any]) -> Sequence[Any]:
        """What a step gave, in host memory, though it read what lives elsewhere meanwhile."""
        for device in self._all:
            if not device.is_host:
                values = device.fetch_all(values)
        return values

    @contextmanager
    def _between_steps(self, keys: Iterable[ResourceKey], deadline: float | None) -> Iterator[None]:
        """In the block no step is under way that writes what containers of resources hold."""
        gates = self._stores.gates(["", *[key.container for key in keys]])
        doing = "operations are put on other devices"
        # Not under the lock: the steps that are waited for may need it.
        with all_closed(gates, deadline, doing), self._programs.lock:
            yield

    # Explaining

    def list_devices(self) -> list[DeviceDescription]:
        """The devices that operations run on."""
        return [device.described() for device in self._all]

    def explain(
        self, signature: Signature, shapes: Mapping[Tensor, Shape], devices: Sequence[Device] | None
    ) -> Explanation:
        """The plan of a signature for these devices, or others; nothing is run or kept."""
        is_own = devices is None
        settled = self._settled if is_own else self._settled.freed
        how = settled, self._measured, is_own, self._lossy_tensors
        return explain(signature, shapes, self._all if devices is None else devices, *how)

    def search(
        self, signature: Signature, shapes: Mapping[Tensor, Shape], search: Search
    ) -> Sequence[tuple[str, Explanation]]:
        """The plan of a signature as it is placed now, and those that a search finds."""
        how = self._settled, self._measured, search, self._lossy_tensors
        return explain_found(signature, shapes, self._all, *how)

    def learn(self, measured: Iterable[tuple[Operation, str, Measured]]) -> None:
        """Predict from now on by what operations took on devices, which are given by name."""
        with self._programs.lock:
            for operation, device, found in measured:
                self._measured.add(operation, self.devices[device].kind, found)

    # Replacing

    @property
    def moved(self) -> Mapping[Operation, str]:
        """The devices, by name, of the operations that were put somewhere."""
        return {operation: device.name for operation, device in list(self._moved.items())}

    def replace(
        self, moves: Mapping[Operation, str | None], asked: Signature, deadline: float | None
    ) -> Replacement:
        """Have operations run on other devices, given by name, and what they touch live there.

        An interrupt is put off until all has moved.
        """
        moved = {op: self.devices[name] for op, name in moves.items() if name is not None}
        with self._programs.lock:
            signatures = [prepared.signature for prepared in self._programs.all]
            placed = [each for each in dict.fromkeys([asked, *signatures]) if not any(each.is_late)]
            before = self._settled
            kept = {op: device for op, device in before.moved.items() if op not in moves}
            settled = before._replace(moved={**kept, **moved})
            homes = settle(moved, placed, self._all, settled)
        with self._between_steps(homes, deadline):
            return Acting().whole(self._replaced, moves.keys(), moved, homes)

    def _replaced(
        self,
        moves: Collection[Operation],
        moved: Mapping[Operation, Device],
        homes: Mapping[ResourceKey, Device],
    ) -> Replacement:
        """What becomes of all where operations are put on other devices, and resources live."""
        lived = self._settled.homes
        gone = {key: home for key, home in homes.items() if lived.get(key, home) is not home}
        dropped = self._move(homes, gone.keys(), moves)
        state = [self._moved_state(key, lived[key], home) for key, home in gone.items()]
        self._moved.update(moved)
        for operation in set(moves) - moved.keys():
            self._moved.pop(operation, None)
        elsewhere: dict[str, str] = {}
        for prepared in dropped:
            elsewhere |= _elsewhere(prepared.placement, moved)
        return Replacement(elsewhere, state, len(dropped))

    def _move(
        self,
        homes: Mapping[ResourceKey, Device],
        gone: Collection[ResourceKey],
        moves: Collection[Operation] = (),
    ) -> list[Prepared]:
        """Have resources live on other devices, all of them or none.

        Args:
            homes: where resources are to live.
            gone: those of them that live elsewhere now.
            moves: operations that are to run elsewhere.

        Returns:
            What was prepared with these, or with what has gone, and was dropped.
        """
        for key, home in homes.items():
            resource = self._stores.find(key)
            if key.container and resource is not None and not usable_on(resource, home):
                raise InvalidArgumentError(
                    f"{key.name!r} stays on {resource.device.name}: sessions share it in the "
                    f"container {key.container!r}",
                    hint="leave what uses it there too",
                )
        lived = self._settled.homes
        before = {key: lived[key] for key in gone}
        dropped = self._programs.drop_where(
            lambda each: any(op in moves or op.key in gone for op in each.operations)
        )
        for runner in dropped.values():
            runner.whole.end()
        # After these have gone, which a step that sees it would find, and before anything moves:
        # a step that began earlier finds out when it ends.
        self._stores.start_over(gone)
        try:
            for key, home in homes.items():
                self._stores.settle(key, home)
        except BaseException:
            for key, home in before.items():
                self._stores.settle(key, home)
            raise
        return list(dropped)

    def _moved_state(self, key: ResourceKey, source: Device, destination: Device) -> MovedState:
        """What is told of a resource that lives elsewhere now."""
        resource, size = self._stores.find(key), 0
        if isinstance(resource, VariableResource) and resource.is_initialized:
            size = resource.bytes
        return MovedState(key.name, source.name, destination.name, size)


def _elsewhere(placement: Placement, moved: Mapping[Operation, Device]) -> dict[str, str]:
    """The names of the devices of the operations that were placed on others, by theirs."""
    return {
        operation.name: device.name
        for operation, device in moved.items()
        if operation in placement.chosen and placement.chosen[operation] is not device
    }
