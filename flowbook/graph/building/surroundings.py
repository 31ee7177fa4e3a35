"""A scope: what surrounds the code that builds, one immutable value per graph and thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from flowbook.graph.model.device_spec import DeviceSpec
from flowbook.graph.model.errors import InvalidTypeError

if TYPE_CHECKING:
    from flowbook.graph.building.flow import Flow
    from flowbook.graph.building.sharing import Sharing
    from flowbook.graph.model.operation import Operation
    from flowbook.graph.model.origin.site import Site


class Scope(NamedTuple):
    """What holds for the operations that a thread builds now.

    Attributes:
        prefix: the name scope, ending with "/" unless empty.
        control_inputs: operations that what is built must wait for.
        device: the requested device; within functions that choose one, what refines their choice.
        choosers: functions that choose a device for each operation, the outermost first, each with
            the request that its choice refines.
        colocation: operations whose device what is built must share.
        container: the container for resources.
        flow: the branch or loop whose inside is being built, or None.
        extends: whether loops and branches that are complete may be added to, as gradients do.
        closes: the Merge that a NextIteration which is built closes.
        sharing: what the template knows of variables whose call is being built, or None.
        site: the site to cite instead of the caller's (a gradient cites its forward operation).
    """

    prefix: str = ""
    control_inputs: tuple[Operation, ...] = ()
    device: str = ""
    choosers: tuple[tuple[str, Callable[[Operation], str | None]], ...] = ()
    colocation: tuple[Operation, ...] = ()
    container: str = ""
    flow: Flow | None = None
    extends: bool = False
    closes: Operation | None = None
    sharing: Sharing | None = None
    site: Site | None = None

    def device_of(self, operation: Operation) -> str:
        """What is requested for an operation that is about to join.

        Raises:
            InvalidTypeError: if a function chooses what is neither a name nor None.
            InvalidArgumentError: if what it chooses is not a device name.
        """
        found = DeviceSpec()
        for device, choose in self.choosers:
            name = choose(operation)
            if name is not None and not isinstance(name, str):
                raise InvalidTypeError(f"a device is named by a string, not {name!r}")
            found = found.merge(DeviceSpec.parse(device)).merge(DeviceSpec.parse(name or ""))
        return str(found.merge(DeviceSpec.parse(self.device)))
