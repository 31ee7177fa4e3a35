"""What branches and loops are made of: `fb.cond` and `fb.while_loop` write them, or people do."""

from flowbook._renamed import no_such_name_in
from flowbook.graph.control_flow.dependencies import with_dependencies
from flowbook.graph.control_flow.routing import (
    control_trigger,
    enter,
    exit,
    loop_cond,
    merge,
    next_iteration,
    switch,
)

__all__ = [
    "control_trigger",
    "enter",
    "exit",
    "loop_cond",
    "merge",
    "next_iteration",
    "switch",
    "with_dependencies",
]

__getattr__ = no_such_name_in(__name__)
