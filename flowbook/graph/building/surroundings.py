"""A scope: what surrounds the code that builds, one immutable value per graph and thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flowbook.graph.building.flow import Flow
    from flowbook.graph.model.operation import Operation
    from flowbook.graph.model.site import Site


@dataclass(frozen=True, slots=True)
class Scope:
    """What holds for the operations that a thread builds now.

    Attributes:
        prefix: the name scope, ending with "/" unless empty.
        control_inputs: operations that what is built must wait for.
        device: the requested device.
        colocation: operations whose device what is built must share.
        container: the container for resources.
        flow: the branch or loop whose inside is being built, or None.
        extends: whether loops and branches that are complete may be added to, as gradients do.
        closes: the Merge that a NextIteration which is built closes.
        site: the site to cite instead of the caller's (a gradient cites its forward operation).
    """

    prefix: str = ""
    control_inputs: tuple[Operation, ...] = ()
    device: str = ""
    colocation: tuple[Operation, ...] = ()
    container: str = ""
    flow: Flow | None = None
    extends: bool = False
    closes: Operation | None = None
    site: Site | None = None
