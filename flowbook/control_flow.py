"""What branches and loops are made of: `fb.cond` and `fb.while_loop` write them, or people do."""

from flowbook.graph.control_flow.dependencies import with_dependencies as with_dependencies
from flowbook.graph.control_flow.routing import *
