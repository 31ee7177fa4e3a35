"""Hides modules from a process that has this folder on its PYTHONPATH: see tools/hidden.py."""

import os
import sys
from importlib.abc import MetaPathFinder
from types import ModuleType


class Hidden(MetaPathFinder):
    """Finds nothing where a module is one of those that the environment names."""

    def __init__(self) -> None:
        self._names = frozenset(os.environ["FLOWBOOK_HIDDEN"].split())

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> None:
        """Refuse a module by its name."""
        if name.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}: `make lab` does not install it")


sys.meta_path.insert(0, Hidden())
