"""All operation families. Importing this package imports all below it, which fills the registry."""

from importlib import import_module
from pkgutil import walk_packages

from flowbook.graph.model.registry import own_definitions

with own_definitions():
    for _module in walk_packages(__path__, f"{__name__}."):
        import_module(_module.name)
