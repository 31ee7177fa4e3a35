"""Makes the pages of the reference: one for each family of names that `flowbook` exposes.

A hook of MkDocs. What is public is what `dir` says; a family is the module that defines it. Its
first sentence opens the page, and the beginning of that sentence is the title.
"""

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.structure.files import File, Files

import flowbook as fb
from flowbook._renamed import IN_CONTRIB, INSTEAD, INSTEAD_IN
from flowbook.graph.definition.keywords import GONE, RENAMED

# In the order in which a reader needs them; what is not named comes after.
GUIDES = (
    *("sessions", "types-and-shapes", "models", "gradients", "control-flow", "random-numbers"),
    *("cells", "notebooks", "displays", "watching", "explaining", "debugging", "performance"),
    *("input-files", "queues", "checkpoints", "exchange", "onnx", "devices", "determinism"),
    "operations",
)
# The families of `fb` itself, by the folders below `flowbook` that hold them.
TOPICS = {
    "Graphs and operations": (
        *("graph.model.", "graph.definition.", "graph.building."),
        *("graph.functions.", "graph.transfer."),
    ),
    "Sessions and devices": ("exec.",),
    "Variables": ("graph.ops.state.",),
    "Arrays": ("graph.ops.basis.", "graph.ops.arrays.", "graph.ops.windows.", "graph.ops.sparse."),
    "Mathematics": (
        *("graph.ops.math.", "graph.ops.reduction.", "graph.ops.signal.", "graph.ops.nn."),
    ),
    "Matrices": ("graph.ops.linalg.",),
    "Random numbers": ("graph.ops.random.",),
    "Branches and loops": ("graph.control_flow.",),
    "Gradients": ("graph.gradients.", "train."),
    "Queues, readers, text": ("graph.ops.queues.", "graph.ops.text."),
    "Checks": ("graph.ops.checks.",),
    "Python and files": ("graph.ops.outside.",),
    "Explaining": ("explain.",),
    "Displays": ("widgets.",),
}


def on_files(files: Files, config: Any) -> Files:
    """Add the reference, by namespace, and the navigation."""
    contents = []
    sections: list[Any] = ["reference/index.md"]
    for name, namespace in _namespaces().items():
        shown = name.replace("flowbook", "fb")
        contents.append(f"## {shown}\n\n{_summary(namespace)}\n")
        families = _families(namespace)
        titles = _titles(families)
        entries: list[Any] = []
        for topic, modules in _topics(namespace, families).items():
            pages = []
            contents += [f"### {topic}\n"] if topic else []
            for module in sorted(modules, key=lambda module: titles[module].lower()):
                title, members = titles[module], families[module]
                page = f"reference/{name}.{module.__name__.rpartition('.')[2]}.md"
                text = "\n".join(f"::: {name}.{member}\n" for member in members)
                content = f"# {title}\n\n{_summary(module)}\n\n{text}"
                files.append(File.generated(config, page, content=content))
                pages.append(page)
                listed = ", ".join(f"[{m}]({Path(page).name}#{name}.{m})" for m in members)
                contents.append(f"- **{title}**: {listed}")
            contents.append("")
            entries += [{topic: pages}] if topic else pages
        sections.append({shown: entries})
    index = "# Reference\n\n" + "\n".join(contents)
    files.append(File.generated(config, "reference/index.md", content=index))
    spellings = File.generated(config, "spellings.md", content=_spellings())
    files.append(spellings)
    config["nav"] = [
        {
            "Getting started": [
                *("index.md", "installing.md", "ten-minutes.md", "concepts.md"),
                "guide-overview.md",
            ]
        },
        {"Tutorials": _pages(files, "tutorials/")},
        {
            "Guides": [
                "recipes.md",
                *sorted(set(_pages(files, "guide-")) - {"guide-overview.md"}, key=_place),
            ]
        },
        {"Examples": ["examples/index.md", *_pages(files, "examples/")]},
        {"Coming from": ["from-pytorch-and-jax.md", "from-tensorflow.md", "spellings.md"]},
        {
            "Help": [
                *("troubleshooting.md", "errors.md", "questions.md", "glossary.md"),
                *("changelog.md", "contributing.md"),
            ]
        },
        {"Reference": sections},
    ]
    return files


def _place(page: str) -> tuple[int, str]:
    name = page.removeprefix("guide-").removesuffix(".md")
    return (GUIDES.index(name) if name in GUIDES else len(GUIDES), name)


def _pages(files: Files, start: str) -> list[str]:
    """The pages whose paths begin so, but for the first of a folder."""
    pages = [f.src_uri for f in files if f.src_uri.startswith(start)]
    return [page for page in pages if page.endswith(".md") and not page.endswith("index.md")]


def _spellings() -> str:
    """The page of what others call otherwise: the table of the error messages."""
    rows = [
        f"| `{spelt}` | {instead} |"
        for namespace, table in {"": INSTEAD, **INSTEAD_IN, "contrib": IN_CONTRIB}.items()
        for name, instead in sorted(table.items(), key=lambda row: row[0].lower())
        for spelt in [f"{namespace}.{name}" if namespace else name]
        if name
    ]
    keywords = [f"| `{old}=` | `{'=`, `'.join(new)}=` |" for old, new in sorted(RENAMED.items())]
    keywords += [f"| `{old}=` | {instead} |" for old, instead in sorted(GONE.items())]
    head = "| there | here |\n|---|---|\n"
    return (
        "# Names that are spelt differently\n\nWhat TensorFlow 1, NumPy, PyTorch and JAX call "
        "otherwise. Using one of these names raises an error that says as much.\n\n"
        + head
        + "\n".join(rows)
        + "\n\n## Arguments\n\nA function takes the one that it has.\n\n"
        + head
        + "\n".join(keywords)
        + "\n"
    )


def _namespaces() -> dict[str, ModuleType]:
    """The modules that a user reaches by attributes."""
    inner = {n: getattr(fb, n) for n in dir(fb)}
    return {"flowbook": fb} | {
        f"flowbook.{n}": m for n, m in inner.items() if isinstance(m, ModuleType)
    }


def _topics(namespace: ModuleType, families: Iterable[ModuleType]) -> dict[str, list[ModuleType]]:
    """Families by topic: of `fb` itself, as `TOPICS` says; of others one that has no name."""
    if namespace is not fb:
        return {"": list(families)}
    found: dict[str, list[ModuleType]] = {topic: [] for topic in TOPICS}
    for module in families:
        path = module.__name__.removeprefix("flowbook.")
        [topic] = [topic for topic, folders in TOPICS.items() if path.startswith(folders)]
        found[topic].append(module)
    return found


def _families(namespace: ModuleType) -> dict[ModuleType, list[str]]:
    """The names that a namespace exposes, by the module that defines them."""
    shown = [n for n in dir(namespace) if not isinstance(getattr(namespace, n), ModuleType)]
    source = Path(namespace.__file__ or "").read_text(encoding="utf-8")
    home = {
        name: statement.module
        for statement in ast.parse(source).body
        if isinstance(statement, ast.ImportFrom) and statement.module
        for alias in statement.names
        for name in _imported(alias, statement.module)
    }
    found: dict[ModuleType, list[str]] = {}
    for name in shown:
        module = importlib.import_module(home.get(name, namespace.__name__))
        found.setdefault(module, []).append(name)
    return found


def _imported(alias: ast.alias, module: str) -> list[str]:
    """The names that an import from a module binds."""
    if alias.name == "*":
        return list(importlib.import_module(module).__all__)
    return [alias.asname or alias.name]


def _summary(module: ModuleType) -> str:
    """The first sentence of a module's docstring."""
    return (module.__doc__ or module.__name__).split("\n\n")[0].replace("\n", " ")


_PARTICULARS = re.compile(r"[:;.]| \(|, (?:as|by|elementwise|made|taken|that|where|which|with)\b")


def _titles(modules: Iterable[ModuleType]) -> dict[ModuleType, str]:
    """A title for each of some modules: the shortest that no other has."""
    short = {module: _title(module) for module in modules}
    taken = Counter(short.values())
    return {m: t if taken[t] == 1 else _summary(m).rstrip(".") for m, t in short.items()}


def _title(module: ModuleType) -> str:
    """The beginning of that sentence, up to where it goes into particulars."""
    start = _PARTICULARS.split(_summary(module))[0]
    start = re.sub(r"^(?:An?|The) ", "", start)
    return start[0].upper() + start[1:]
