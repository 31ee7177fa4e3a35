"""What branches and loops are made of: `fb.cond` and `fb.while_loop` write them, or people do.

`Batching` is how `fb.vectorized_map` builds an operation for all elements at once.
"""

from flowbook.graph.control_flow.dependencies import with_dependencies as with_dependencies
from flowbook.graph.control_flow.routing import *
from flowbook.graph.definition.batching import *
