"""The systems that are compared: where each lives, how it is loaded and held to a few threads.

Invariant: a process loads exactly one system, so that no system's thread pool or allocator
disturbs another's.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

THREADS = 2
PEERS = Path(__file__).parent / ".peers"

# Read by OpenMP, OpenBLAS, MKL, numba, TensorFlow when they load.
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)


# Held to older code by one of these, OpenBLAS multiplies at half its speed: NumPy, and what stands
# on it, would be measured on another processor than the other systems.
_HANDICAPS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


@dataclass(frozen=True)
class System:
    """One system: `load` imports it and returns what the rows receive."""

    name: str
    title: str
    load: Callable[[], Any]
    module: str
    distributions: tuple[str, ...]
    is_peer: bool

    def interpreter(self) -> Path:
        """The Python that has this system: this project's own, or the peers'."""
        if not self.is_peer:
            return Path(sys.executable)
        return peers_python()

    def versions(self) -> dict[str, str]:
        """Versions of its distributions in the running interpreter."""
        found = {"python": ".".join(map(str, sys.version_info[:3]))}
        for distribution in self.distributions:
            try:
                found[distribution] = metadata.version(distribution)
            except metadata.PackageNotFoundError:
                found[distribution] = "uninstalled source"
        return found


def peers_python() -> Path:
    """The interpreter of the peers' environment, which may not exist yet."""
    if os.name == "nt":
        return PEERS / "Scripts" / "python.exe"
    return PEERS / "bin" / "python"


def limited_environment(threads: int) -> dict[str, str]:
    """This process's environment, with every library held to so many threads, and nothing else.

    OpenMP's threads sleep while they wait: on a quiet machine that costs nothing measurable, beside
    any other busy process their spinning makes PyTorch's MLP step take 190 ms instead of 1.1.
    """
    limits = dict.fromkeys(_THREAD_VARIABLES, str(threads))
    kept = {name: value for name, value in os.environ.items() if name not in _HANDICAPS}
    return {**kept, **limits, "OMP_WAIT_POLICY": "PASSIVE"}


def threads() -> int:
    """How many threads this process is held to."""
    return int(os.environ["OMP_NUM_THREADS"])


def limit_processors() -> None:
    """Hold this process to `THREADS` processors: the only limit that XLA's thread pool obeys."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])


# Each of these imports in its function: an interpreter has only one of the systems.


def _load_flowbook() -> Any:
    return importlib.import_module("flowbook")


def _load_tf1() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    tf = importlib.import_module("tensorflow.compat.v1")
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    return tf


def _load_jax() -> Any:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    return importlib.import_module("jax")


def _load_torch() -> Any:
    torch = importlib.import_module("torch")
    torch.set_num_threads(threads())
    torch.set_num_interop_threads(threads())
    return torch


def _load_numpy() -> Any:
    return importlib.import_module("numpy")


SYSTEMS = {
    system.name: system
    for system in (
        System("flowbook", "Flowbook", _load_flowbook, "flowbook", ("flowbook", "numpy"), False),
        System("tf1", "TF1", _load_tf1, "tensorflow", ("tensorflow-cpu", "numpy"), True),
        System("jax", "JAX", _load_jax, "jax", ("jax", "jaxlib", "numpy"), True),
        System("torch", "PyTorch", _load_torch, "torch", ("torch", "numpy"), True),
        # By hand, in Flowbook's interpreter: the same NumPy, the same Python.
        System("numpy", "Python/NumPy by hand", _load_numpy, "numpy", ("numpy",), False),
    )
}


def system_of(label: str) -> System:
    """The system of a label: `tf1 make_callable` is a variant of `tf1`."""
    return SYSTEMS[label.split()[0]]
