"""What branches and loops are made of: `fb.cond` and `fb.while_loop` write them, or people do.

Operations of one's own route values too: `fb.OpDef` takes a `Retag`, and kernels give `DEAD` for
what there is not. `Batching` is how `fb.vectorized_map` builds an operation for all elements at
once, and `StandsFor` what runs in the place of a call.
"""

from flowbook.graph.control_flow.dependencies import with_dependencies as with_dependencies
from flowbook.graph.control_flow.routing import *
from flowbook.graph.definition.batching import *
from flowbook.graph.definition.standing import *
from flowbook.graph.model.retag import *
