"""The notebooks' kernels in the tests find what `make lab` installs, and no more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import hidden

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {**os.environ, **hidden.variables()}


@pytest.mark.parametrize(
    ("module", "is_there"),
    [
        ("flowbook", True),
        ("tensorboard", True),
        ("sklearn", True),
        ("mypy", False),
        ("onnx", False),
    ],
)
def test_what_the_notebooks_may_import(
    module: str, is_there: bool, environment: dict[str, str]
) -> None:
    found = subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (found.returncode == 0) is is_there, found.stderr
    assert is_there or "`make lab` does not install it" in found.stderr


def test_the_extra_is_what_make_lab_installs() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "$(INSTALL) '.[notebooks]'" in makefile
