"""The public interface is what `dir` says, is documented, and loads nothing needlessly."""

import builtins
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import flowbook as fb
from flowbook.graph.model.retag import DEAD

# The layers behind the interface. Python binds each as an attribute once it is imported.
LAYERS = {"graph", "exec", "explain", "cluster", "cells", "widgets", "port"}

# What a session may come to need, but `import flowbook` may not load.
HEAVY = {
    "IPython",
    "PIL",
    "cupy",
    "distributed",
    "fsspec",
    "google_crc32c",
    "grpc",
    "ipywidgets",
    "llvmlite",
    "matplotlib",
    "onnx",
    "pandas",
    "pyarrow",
    "scipy",
    "tensorboard",
    "tqdm",
}


def public_modules() -> list[ModuleType]:
    """Return the modules that a user reaches by attributes: flowbook, flowbook.nn, ..."""
    members = [getattr(fb, name) for name in dir(fb)]
    return [fb, *(member for member in members if isinstance(member, ModuleType))]


def documentation(member: object) -> str | None:
    """Return a member's own docstring, not the one that an instance has from its class."""
    own = member.__doc__
    inherited = not isinstance(member, type) and own is type(member).__doc__
    return None if inherited else own


MODULES = pytest.mark.parametrize("module", public_modules(), ids=lambda module: module.__name__)


def families() -> list[ModuleType]:
    """Return the modules behind the interface that say what of them is public."""
    return [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith(tuple(f"flowbook.{layer}." for layer in {*LAYERS, "train"}))
        and not name.startswith("flowbook.graph.numerics.")
        and hasattr(module, "__all__")
        and not hasattr(module, "__path__")
        and module is not fb.errors
    ]


@pytest.mark.parametrize(
    "module", [*public_modules(), *families()], ids=lambda module: module.__name__
)
def test_all_is_sorted_without_duplicates(module: ModuleType) -> None:
    assert list(module.__all__) == sorted(set(module.__all__))


def test_what_is_public_is_exactly_what_the_package_exposes() -> None:
    exposed = {name for name in vars(fb) if not name.startswith("_")}
    assert exposed - LAYERS == set(dir(fb))


@pytest.mark.parametrize("module", families(), ids=lambda module: module.__name__)
def test_what_a_family_calls_public_is(module: ModuleType) -> None:
    exposed = {id(getattr(m, name)) for m in public_modules() for name in dir(m)}
    hidden = [name for name in module.__all__ if id(getattr(module, name)) not in exposed]
    assert not hidden


def types_in(hint: Any) -> Iterator[Any]:
    """Yield the types that an annotation is made of."""
    yield get_origin(hint) or hint
    for part in hint if isinstance(hint, list) else get_args(hint):
        yield from types_in(part)


def test_what_a_definition_can_be_given_is_public() -> None:
    hints = get_type_hints(inspect.unwrap(fb.OpDef.__init__)).values()
    needed = {t for hint in hints for t in types_in(hint) if isinstance(t, type)}
    ours = {t for t in needed if t.__module__.startswith("flowbook.")}
    exposed = {id(getattr(module, name)) for module in public_modules() for name in dir(module)}
    assert fb.Touch in ours
    assert [t for t in ours if id(t) not in exposed] == []
    # What kernels give has no type of its own.
    assert fb.control_flow.DEAD is DEAD


@MODULES
def test_nothing_is_public_by_accident(module: ModuleType) -> None:
    """What a namespace needs for itself is named with an underscore."""
    members = {name: getattr(module, name) for name in dir(module)}
    homes = {name: getattr(member, "__module__", None) for name, member in members.items()}
    own = tuple(f"flowbook.{layer}." for layer in {*LAYERS, "train"})
    exchanges = ("flowbook.onnx.", "flowbook.tensorflow.")
    strays = {
        name: home
        for name, home in homes.items()
        if isinstance(home, str) and not f"{home}.".startswith((*own, *exchanges))
    }
    assert strays == {}


@MODULES
def test_a_star_imports_what_is_public_and_leaves_builtins(module: ModuleType) -> None:
    imported: dict[str, object] = {}
    exec(f"from {module.__name__} import *", imported)
    del imported["__builtins__"]
    assert set(imported) == set(dir(module)) - set(dir(builtins))


@MODULES
def test_every_public_member_exists_and_is_documented(module: ModuleType) -> None:
    members = {name: getattr(module, name) for name in dir(module)}
    undocumented = [
        name
        for name, member in members.items()
        if (callable(member) or isinstance(member, ModuleType)) and not documentation(member)
    ]
    assert not undocumented


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = f"import sys, flowbook; print(*sorted({HEAVY!r} & set(sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not loaded


@MODULES
def test_what_lists_its_arguments_says_what_its_name_is(module: ModuleType) -> None:
    """Decorators add it to docstrings: see flowbook/graph/definition/descriptions.py."""
    functions = {
        name: member
        for name in dir(module)
        if callable(member := getattr(module, name)) and not isinstance(member, type)
    }
    unsaid = [
        name
        for name, function in functions.items()
        if "name" in inspect.signature(function).parameters
        and "\nArgs:\n" in (text := inspect.cleandoc(function.__doc__ or ""))
        and not re.search(r"^    name: ", text, re.MULTILINE)
    ]
    assert not unsaid
