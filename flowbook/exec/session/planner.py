"""Plans a session's runs: what goes where, what it would cost, and how it comes to go elsewhere.

It takes apart what a person gives, asks the master, and runs steps where placements are measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from flowbook.exec.devices.device import Device, DeviceDescription
from flowbook.exec.devices.local_devices import imagined_devices
from flowbook.exec.master import Master, Placer, offered
from flowbook.exec.placement.measurements import Measured
from flowbook.exec.placement.search import Search
from flowbook.exec.plan.explanation import Explanation
from flowbook.exec.plan.pipeline import Prepared
from flowbook.exec.plan.replacing import Replacement
from flowbook.exec.session.calls import Calls
from flowbook.exec.session.given_placement import moves_of
from flowbook.exec.session.placement_search import PlacementSearch, Running, searched, what_stays
from flowbook.exec.signature.feeds import Feed, check_mapping, feedable
from flowbook.exec.signature.fetches import flatten
from flowbook.exec.signature.signature import Signature
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.transfer.shaping import check_fed, shape_of

# What is given of each feed: its value or its shape.
_Feeds = Mapping[Any, Any] | None


class Planner:
    """Plans the runs of one session; arguments and errors are as the session's methods have them.

    Args:
        calls: what the session remembers, which is forgotten when operations go elsewhere.
        master: who runs the graph.
    """

    def __init__(self, calls: Calls, master: Master) -> None:
        self._calls = calls
        self._master = master
        self._graph = master.graph

    @property
    def _placer(self) -> Placer:
        return offered(self._master.placer, "choice of where operations run")

    def list_devices(self) -> list[DeviceDescription]:
        """The devices that operations run on."""
        return self._placer.list_devices()

    def learn(self, measured: Iterable[tuple[Operation, str, Measured]]) -> None:
        """Have what was measured be predicted by, wherever anything is predicted."""
        if self._master.placer is not None:
            self._master.placer.learn(measured)

    def explain(
        self, fetches: Any, feeds: _Feeds, devices: Sequence[str | Device] | None
    ) -> Explanation:
        """The plan of a run; see `Session.explain`."""
        signature, shapes = self._shaped(fetches, feeds)
        others = None if devices is None else imagined_devices(devices)
        return self._placer.explain(signature, shapes, others)

    def replace(
        self, placement: Explanation | Mapping[Any, str | None], deadline: float | None
    ) -> Replacement:
        """Have operations run elsewhere; see `Session.replace`."""
        names = [each.name for each in self._placer.list_devices()]
        moves, asked = moves_of(self._graph, names, placement)
        try:
            return self._placer.replace(moves, asked, deadline)
        finally:
            self._calls.forget()

    def search(
        self, fetches: Any, feeds: _Feeds, search: Search, seconds: float | None
    ) -> PlacementSearch:
        """Look for a better placement; see `Session.search_placement`.

        Args:
            fetches: what the step fetches.
            feeds: what it is fed with.
            search: finds placements.
            seconds: how long steps are run with them; None not at all.
        """
        signature, shapes = self._shaped(fetches, feeds)
        plans = self._placer.search(signature, shapes, search)
        prepared = self._master.prepare(signature)
        why = "it was not asked for" if seconds is None else what_stays(prepared)
        if not why and any(isinstance(value, tuple | Shape) for value in (feeds or {}).values()):
            why = "what is fed are shapes"
        running = None if why else self._running(signature, prepared, feeds or {})
        return searched(plans, search, running, why, seconds or 0.0)

    def _shaped(self, fetches: Any, feeds: _Feeds) -> tuple[Signature, dict[Tensor, Shape]]:
        """What is asked for, and the shapes of what is fed."""
        check_mapping(feeds)
        flat = flatten(self._graph, fetches)
        given = (feeds or {}).items()
        shapes = {feedable(self._graph, k): shape_of(v, "an explanation") for k, v in given}
        check_fed(shapes)
        return Signature(tuple(flat.tensors), tuple(flat.targets), tuple(shapes)), shapes

    def _running(
        self, signature: Signature, prepared: Prepared, feeds: Mapping[Any, Any]
    ) -> Running:
        """How steps are run that nothing watches."""
        master, graph = self._master, self._graph
        resources = offered(master.resources, "access to what variables hold")
        values = [Feed(feedable(graph, key)).value(value) for key, value in feeds.items()]

        def put(plan: Explanation) -> Callable[[], object]:
            self.replace(plan, None)
            return partial(master.run, master.prepare(signature), values)

        def keep(plan: Explanation) -> Callable[[], object]:
            touched = set(prepared.stateful)
            variables = [each for each in graph.variables() if each.op in touched]
            held, moved = resources.snapshot(variables, None), self._placer.moved

            def put_back() -> None:
                self.replace(plan, None)
                self.replace({op: moved.get(op) for op in plan.operations}, None)
                resources.put(held, None)

            return put_back

        return Running(put, keep)
