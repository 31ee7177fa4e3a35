"""Branches and loops: operations that route values, and what people write (white paper, 4.4)."""

from importlib import import_module
from pkgutil import iter_modules

# Operations take gradients, these take loops apart, and loops are built of operations: whichever
# of them is imported first, operations are loaded first.
import flowbook.graph.ops  # noqa: F401
from flowbook.graph.model.registry import own_definitions

with own_definitions():
    for _module in iter_modules(__path__, f"{__name__}."):
        import_module(_module.name)
