"""How many threads the BLAS libraries in NumPy and SciPy use: a number of the whole process.

OpenBLAS's threads spin while they wait for each other. Where one of them is not running, because
another process has its processor, the others burn theirs until it comes back: a product of half a
millisecond takes twenty, a decomposition a hundred times its time.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from threading import Lock, get_ident
from typing import Any

from flowbook.exec.kernels.gemm_plan import Gemm

# What OpenBLAS's functions are called: in NumPy's wheels, in SciPy's, and where the system has it.
_NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}", "openblas_{}64_")
# And what gemm is called, by the dtype's character and BLAS's letter, where sizes have 64 bits.
_GEMMS = {"scipy_openblas_{}64_": "scipy_cblas_{}gemm64_", "openblas_{}64_": "cblas_{}gemm64_"}
_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
# What it says of itself if its threads are its own. With OpenMP's, a limit is one of the thread.
_OWN_THREADS = 1


class Blas:
    """One OpenBLAS library.

    Args:
        get: gives the number of its threads.
        limit: sets it.
        gemms: its products of matrices by the dtypes' characters, where their
            sizes have 64 bits.
    """

    def __init__(
        self,
        get: Callable[[], int],
        limit: Callable[[int], object],
        gemms: Mapping[str, Gemm] | None = None,
    ) -> None:
        self._get, self._limit = get, limit
        self.gemms = gemms or {}
        self._lock = Lock()
        # The threads that are inside of `limited`, and what the number is outside.
        self._inside: dict[int, None] = {}
        self._outside = 0

    def threads(self) -> int:
        """How many threads it uses outside of `limited`."""
        with self._lock:
            return self._outside if self._inside else self._get()

    def limited(
        self, threads: int, function: Callable[..., Any], *arguments: Any, **options: Any
    ) -> Any:
        """Call a function while the library uses so many threads.

        So does meanwhile whoever else calls it in this process. Of two limits at the same time the
        later one holds.

        Args:
            threads: how many.
            function: not one that calls this.
            arguments: what it is given.
            options: by name.
        """
        me = get_ident()
        try:
            with self._lock:
                if not self._inside:
                    self._outside = self._get()
                self._inside[me] = None
                self._limit(threads)
            return function(*arguments, **options)
        finally:
            # Python handles an interrupt after a call, not between: nothing here can be left out.
            with self._lock:
                if me in self._inside:
                    del self._inside[me]
                    if not self._inside:
                        self._limit(self._outside)

    def reset(self) -> None:
        """Forget the threads that are inside, of which a forked process has none."""
        self._lock = Lock()
        if self._inside:
            self._inside.clear()
            self._limit(self._outside)


# The modules that the libraries are looked for in, as they are linked to them.
NUMPYS, SCIPYS = "numpy.linalg._umath_linalg", "scipy.linalg._flapack"

_libraries: dict[str, Blas | None] = {}
_lock = Lock()


def library(module: str) -> Blas | None:
    """The library that an extension module is linked to, if it is OpenBLAS with its own threads.

    Args:
        module: its name; it is imported when it is first asked for.
    """
    if module not in _libraries:
        with _lock:
            if module not in _libraries:
                _libraries[module] = _linked(import_module(module))
    return _libraries[module]


def _linked(module: Any) -> Blas | None:
    try:
        linked = ctypes.PyDLL(module.__file__)
    except OSError:
        return None
    for name in _NAMES:
        try:
            kind, get, limit = (
                linked[name.format(what)]
                for what in ("get_parallel", "get_num_threads", "set_num_threads")
            )
        except AttributeError:
            continue
        return Blas(get, limit, _gemms(linked, name)) if kind() == _OWN_THREADS else None
    return None


def _gemms(linked: Any, name: str) -> dict[str, Gemm]:
    if name not in _GEMMS:
        return {}
    named = {char: _GEMMS[name].format(letter) for char, letter in _LETTERS.items()}
    return {
        char: Gemm(ctypes.cast(linked[gemm], ctypes.c_void_p).value or 0, char)
        for char, gemm in named.items()
    }


def _reset() -> None:
    global _lock
    _lock = Lock()
    for blas in _libraries.values():
        if blas is not None:
            blas.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)
