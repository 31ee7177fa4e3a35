"""Kernels of the notebooks find what `make lab` installs, and no more."""

import os
from pathlib import Path


def pytest_configure() -> None:
    folders = [Path(__file__).parents[1] / "tools" / "as_installed", os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(str(folder) for folder in folders if folder)
