"""Hides from a Python process what a person who reads the notebooks has not installed.

`make lab` installs the extra `notebooks` alone, the tests all of them: with this folder on
PYTHONPATH a kernel imports what `make lab` would have installed, and nothing else of what is there.
"""

import re
import sys
import tomllib
from importlib.abc import MetaPathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
EXTRA = "notebooks"


def installed() -> set[str]:
    """The names of the distributions that come with the extra, and with what it needs."""
    from packaging.requirements import Requirement

    found: set[tuple[str, str]] = set()
    rest = [("flowbook", EXTRA)]
    while rest:
        name, extra = rest.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        for requirement in map(Requirement, needs(name, extra)):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                rest += [(plain(requirement.name), each) for each in ("", *requirement.extras)]
    return {name for name, _ in found}


def needs(name: str, extra: str) -> list[str]:
    """What a distribution says that it needs; Flowbook's own as its source says it."""
    if name != "flowbook":
        try:
            return requires(name) or []
        except PackageNotFoundError:
            return []  # Of another platform.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["optional-dependencies"][extra] if extra else project["dependencies"]


def plain(name: str) -> str:
    """A distribution's name, however it is spelt."""
    return re.sub(r"[-_.]+", "-", name).lower()


class Hidden(MetaPathFinder):
    """Finds nothing where a module belongs to distributions that are not there."""

    def __init__(self) -> None:
        there = installed()
        self._names = {
            module
            for module, distributions in packages_distributions().items()
            if not any(plain(each) in there for each in distributions)
        }

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> None:
        """Refuse a module by its name."""
        if name.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}: `make lab` does not install it")


sys.meta_path.insert(0, Hidden())
