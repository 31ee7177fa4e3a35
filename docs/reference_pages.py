"""Makes the pages of the reference: one for each family of names that `flowbook` exposes.

A hook of MkDocs. What is public is what `__all__` says; a family is the module that defines it, and
its title is that module's first sentence.
"""

import ast
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.structure.files import File, Files

import flowbook as fb


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    contents = []
    for name, namespace in _namespaces().items():
        contents.append(f"## {name.replace('flowbook', 'fb')}\n\n{_summary(namespace)}\n")
        for module, members in _families(namespace).items():
            page = f"reference/{name}.{module.__name__.rpartition('.')[2]}.md"
            title = _summary(module).rstrip(".")
            text = "\n".join(f"::: {name}.{member}\n" for member in members)
            files.append(File.generated(config, page, content=f"# {title}\n\n{text}"))
            listed = ", ".join(f"[{m}]({Path(page).name}#{name}.{m})" for m in members)
            contents.append(f"- **{title}**: {listed}")
        contents.append("")
    index = "# Reference\n\n" + "\n".join(contents)
    files.append(File.generated(config, "reference/index.md", content=index))
    return files


def _namespaces() -> dict[str, ModuleType]:
    """The modules that a user reaches by attributes."""
    inner = {n: getattr(fb, n) for n in fb.__all__}
    return {"flowbook": fb} | {
        f"flowbook.{n}": m for n, m in inner.items() if isinstance(m, ModuleType)
    }


def _families(namespace: ModuleType) -> dict[ModuleType, list[str]]:
    """The names that a namespace exposes, by the module that defines them."""
    shown = [n for n in namespace.__all__ if not isinstance(getattr(namespace, n), ModuleType)]
    source = Path(namespace.__file__ or "").read_text(encoding="utf-8")
    home = {
        alias.asname or alias.name: statement.module
        for statement in ast.parse(source).body
        if isinstance(statement, ast.ImportFrom) and statement.module
        for alias in statement.names
    }
    found: dict[ModuleType, list[str]] = {}
    for name in shown:
        module = importlib.import_module(home.get(name, namespace.__name__))
        found.setdefault(module, []).append(name)
    return found


def _summary(module: ModuleType) -> str:
    """The first sentence of a module's docstring."""
    return (module.__doc__ or module.__name__).split("\n\n")[0].replace("\n", " ")
