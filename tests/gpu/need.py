"""What tests on a GPU need: one, and CuPy."""

from __future__ import annotations

import pytest

from flowbook.exec.devices.cuda import why_not


def skip_without_gpu() -> None:
    """Skip the file that calls this where there is none, and say why.

    No installation brings a GPU: continuous integration lets this skip pass.
    """
    reason = why_not(0)
    if reason is not None:
        pytest.skip(f"no GPU is here: {reason}", allow_module_level=True)
