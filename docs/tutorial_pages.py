"""Makes pages of what lies beside `docs`: notebooks with what their cells show, examples, texts.

A hook of MkDocs. Nothing is run. The outputs are those that are stored in the notebook, which the
tests hold against what its cells do (`make test PHASES=notebooks`). Formulas become MathML, which
browsers draw by themselves.
"""

import ast
import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
NOTEBOOKS, EXAMPLES = ROOT / "notebooks", ROOT / "examples"
# In the order in which a newcomer reads them.
ORDER = (
    *("welcome", "digits", "see_the_graph", "loops", "input_and_checkpoints", "devices"),
    "define_an_operation",
)
# Texts of the repository that are pages too.
TEXTS = ("CHANGELOG.md", "CONTRIBUTING.md")
# What examples have drawn of themselves.
DRAWN = "pictures/*.svg"
PICTURES = {"image/svg+xml": "svg", "image/png": "png"}
_LINK = re.compile(r"\]\((?!https?:)([^)]*)\)")
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, and the pictures that they show."""
    names = sorted((path.stem for path in NOTEBOOKS.glob("*.ipynb")), key=_place)
    for name in names:
        notebook = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
        parts = []
        for number, cell in enumerate(notebook["cells"]):
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts.append(_FORMULA.sub(_formula, _LINK.sub(_link, source)))
                continue
            parts.append(_fenced(source, "python"))
            for each, output in enumerate(cell["outputs"]):
                parts += _shown(f"{name}-{number}-{each}", output, files, config)
        head = (
            f"!!! note inline end\n    The notebook `notebooks/{name}.ipynb`, with what its cells "
            "show. `make lab` opens it, alive.\n"
        )
        title, *rest = parts
        page = File.generated(
            config, f"tutorials/{name}.md", content="\n\n".join([_under_title(title, head), *rest])
        )
        files.append(page)
    for page, content in _examples():
        files.append(File.generated(config, f"examples/{page}.md", content=content))
    for picture in sorted(EXAMPLES.glob(DRAWN)):
        where = f"examples/{picture.relative_to(EXAMPLES)}"
        files.append(File.generated(config, where, abs_src_path=str(picture)))
    for text in TEXTS:
        content = (ROOT / text).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, text.lower(), content=content))
    return files


def _examples() -> Iterator[tuple[str, str]]:
    """The pages of the examples: the list of them, and the text of each."""
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    listed = listed.replace(".py)", ".md)").replace("../notebooks/", "../tutorials/")
    yield "index", listed.replace(".ipynb)", ".md)")
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", listed)
    for path in sorted(EXAMPLES.glob("*.py")):
        code = path.read_text(encoding="utf-8")
        shown = [
            f"![{alt}]({picture})" for alt, picture in pictures if Path(picture).stem == path.stem
        ]
        what = (ast.get_docstring(ast.parse(code)) or "").partition("\n\n")[0]
        yield path.stem, "\n\n".join([f"# {path.stem}", what, *shown, _fenced(code, "python")])


def _place(name: str) -> tuple[int, str]:
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def _under_title(text: str, head: str) -> str:
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{head}\n{rest}"


def _shown(name: str, output: Any, files: Files, config: Any) -> Iterator[str]:
    """What an output looks like; its pictures become files."""
    if output["output_type"] == "stream":
        yield _fenced("".join(output["text"]), "text")
        return
    if output["output_type"] == "error":
        yield _fenced("\n".join(output["traceback"]), "text")
        return
    data = output["data"]
    for kind, suffix in PICTURES.items():
        if kind in data:
            text = "".join(data[kind])
            content = base64.b64decode(text) if suffix == "png" else text
            picture = f"tutorials/{name}.{suffix}"
            files.append(File.generated(config, picture, content=content))
            said = "".join(data["text/plain"]).partition("\n")[0].replace('"', "'")
            yield f"![{said.strip('<>[]')}]({name}.{suffix})"
            return
    if "text/html" in data:
        # A blank line would end it.
        html = re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]))
        yield f'<div class="output">{html}</div>'
        return
    yield _fenced("".join(data["text/plain"]), "text")


def _fenced(text: str, language: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````"


def _link(match: re.Match[str]) -> str:
    """A link as the site has it: to another tutorial, to a guide, or else to a name in the text."""
    target = match[1]
    if target.endswith(".ipynb"):
        target = target.removesuffix(".ipynb") + ".md"
    elif target.startswith("../docs/"):
        target = target.replace("../docs/", "../")
    elif target.startswith("../examples/"):
        target = target.removesuffix(".py") + ".md"
    return f"]({target})"


def _formula(match: re.Match[str]) -> str:
    return convert(match[1] or match[2], display="block" if match[1] else "inline")
