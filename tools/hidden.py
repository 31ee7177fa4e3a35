"""Which modules a person who reads the notebooks has not installed.

`make lab` installs the extra `notebooks` alone, the tests all of them. A Python process with these
variables imports what `make lab` would have installed, and nothing else of what is there. To find
out what that is takes longer than most imports: whoever starts such processes does it once for all.
"""

import os
import re
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
EXTRA = "notebooks"


def variables() -> dict[str, str]:
    """What is to be set in a process's environment."""
    folders = [str(ROOT / "tools" / "as_installed"), os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(folder for folder in folders if folder)
    return {"PYTHONPATH": path, "FLOWBOOK_HIDDEN": " ".join(sorted(hidden()))}


def hidden() -> set[str]:
    """The names of the modules that belong to other distributions."""
    there = installed()
    return {
        module
        for module, distributions in packages_distributions().items()
        if not any(plain(each) in there for each in distributions)
    }


def installed() -> set[str]:
    """The names of the distributions that come with the extra, and with what it needs."""
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
