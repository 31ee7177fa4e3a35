"""Kernels of the notebooks find what `make lab` installs, and no more.

Nor do they find what was measured of the machine: plans are as those that are stored. Their
products and convolutions are small: one thread makes them, since others would only keep
processors busy.
"""

import os
from pathlib import Path


def pytest_configure() -> None:
    folders = [Path(__file__).parents[1] / "tools" / "as_installed", os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(str(folder) for folder in folders if folder)
    os.environ["FLOWBOOK_CACHE"] = os.devnull
    for library in ("OPENBLAS", "OMP"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
