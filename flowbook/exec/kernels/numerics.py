"""What the last bits of a run depend on besides its graph, its feeds and its seeds.

`fb.Session(deterministic=True)` fixes what it can before its first step, and checkpoints record it.
"""

from __future__ import annotations

import platform

import numpy as np

from flowbook.exec.kernels import onednn
from flowbook.graph.model.errors import FailedPreconditionError
from flowbook.graph.model.options import options


def fixed_numerics() -> dict[str, str]:
    """Have products take one thread, unless an option says how many; what bits depend on now.

    Raises:
        UnimplementedError: if threadpoolctl is not installed.
    """
    options.intra_op_threads = options.intra_op_threads or 1
    return {
        "intra_op_threads": str(options.intra_op_threads),
        "numpy": np.__version__,
        "convolutions": onednn.told(),
        "processor": platform.machine(),
    }


def check_same(saved: dict[str, str], now: dict[str, str]) -> None:
    """Refuse to go on where other bits would come out.

    Raises:
        FailedPreconditionError: if something is not as it was; it says what.
    """
    other = [f"{k} was {v}, and is {now.get(k)}" for k, v in saved.items() if now.get(k) != v]
    if other:
        raise FailedPreconditionError(
            f"the training would not go on to the same bits: {'; '.join(other)}",
            hint="a session without deterministic=True goes on all the same",
        )
