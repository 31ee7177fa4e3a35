"""The notebooks' kernels in the tests find what `make lab` installs, and no more."""

import os
import subprocess
import sys
from pathlib import Path

from tools import hidden

ROOT = Path(__file__).parents[2]


PROGRAM = """
import importlib, sys

for module in sys.argv[1:]:
    try:
        importlib.import_module(module)
    except ImportError as error:
        print(error)
"""


def test_what_the_notebooks_may_import() -> None:
    """In one process, since most of them import NumPy."""
    there, others = ["flowbook", "tensorboard", "sklearn"], ["mypy", "onnx"]
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, *there, *others],
        cwd=ROOT,
        env={**os.environ, **hidden.variables()},
        check=True,
        capture_output=True,
        text=True,
    )
    missing = [f"No module named {each!r}: `make lab` does not install it" for each in others]
    assert found.stdout.splitlines() == missing


def test_the_extra_is_what_make_lab_installs() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "$(INSTALL) '.[notebooks]'" in makefile
