"""The examples in the package's docstrings run, and show what they say."""

import importlib
from collections.abc import Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, DocTest, DocTestFinder, DocTestRunner
from pathlib import Path
from types import ModuleType

import pytest

import flowbook as fb

PACKAGE = Path(fb.__file__).parent


def modules_with_examples() -> list[str]:
    """Return the names of the modules whose text has an example; generated ones do not count."""
    return sorted(
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in PACKAGE.rglob("*.py")
        if ">>>" in path.read_text(encoding="utf-8") and not path.stem.endswith("_pb2")
    )


def examples(module: ModuleType) -> Iterator[DocTest]:
    """Yield the docstrings with examples; an operation type has its own, as a function does."""
    finder = DocTestFinder(exclude_empty=True)
    # An operation type that an example defines is a user's.
    users = {"__name__": "__main__"}
    yield from finder.find(module, extraglobs=users)
    for name, member in vars(module).items():
        if isinstance(member, fb.OpDef):
            yield from finder.find(
                member, f"{module.__name__}.{name}", module=module, extraglobs=users
            )


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples(name: str) -> None:
    runner = DocTestRunner(optionflags=ELLIPSIS | NORMALIZE_WHITESPACE)
    report: list[str] = []
    for example in examples(importlib.import_module(name)):
        fb.reset_default_graph()
        runner.run(example, out=report.append)
    assert not runner.failures, "".join(report)
    assert runner.tries, f"{name} has an example where doctest does not look"
