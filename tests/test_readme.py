"""The examples of README and documentation print what they say; a guide lists what it needs."""

import contextlib
import io
import re
import tomllib
from pathlib import Path

import pytest

import flowbook as fb

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
INSTALLING = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def chains(page: str) -> list[list[tuple[str, str]]]:
    """The programs of a page, each with what it prints, by those that go on from one another.

    A program that imports Flowbook begins anew.
    """
    found: list[list[tuple[str, str]]] = []
    for each in re.findall(r"```python\n(.*?)```\n+(?:```\n(.*?)```)?", page, re.DOTALL):
        if "import flowbook" in each[0]:
            found.append([])
        found[-1].append(each)
    return found


EXAMPLES = [
    pytest.param(chain, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, chain in enumerate(chains(page.read_text(encoding="utf-8")))
]


@pytest.mark.usefixtures("own_kinds_of_devices")
@pytest.mark.parametrize("chain", EXAMPLES)
def test_an_example_prints_what_the_page_says(chain: list[tuple[str, str]]) -> None:
    names: dict[str, object] = {}
    for program, printed in chain:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(program, names)
        assert output.getvalue() == printed, program


def requirements() -> dict[str, set[str]]:
    """Return for each required distribution where `pyproject.toml` asks for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    groups = {
        "always": project["project"]["dependencies"],
        "when built": project["build-system"]["requires"],
        # One extra is made of others.
        **{f"`{extra}`": each for extra, each in extras.items() if extra != "notebooks"},
    }
    found: dict[str, set[str]] = {}
    for group, required in groups.items():
        for requirement in required:
            found.setdefault(re.split(r"[^\w.-]", requirement)[0].lower(), set()).add(group)
    return found


def test_table_lists_every_dependency_and_what_installs_it() -> None:
    rows = [
        line.lower().split("|")[1:3] for line in INSTALLING.splitlines() if line.startswith("| ")
    ]
    listed = {
        name: installed_by for names, installed_by in rows for name in re.findall(r"[\w.-]+", names)
    }
    for name, groups in requirements().items():
        assert name in listed, f"{name} is missing in the guide's table"
        assert all(group in listed[name] for group in groups), name


def test_each_error_has_its_place() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"\w+", "".join(re.findall(r"^## .*\n", page, re.MULTILINE))))
    assert set(fb.errors.__all__) - {"OpError"} <= headings


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target
