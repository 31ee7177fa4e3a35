"""When hot loops get their machine code: behind the runs that need it, never in front of them.

A loop runs in NumPy's form first. Once that has taken as long as compiling takes, a thread compiles
it and puts the machine code in place, in one assignment. Whatever goes wrong leaves NumPy's form
where it is, once, and `hot_loops` tells why.
"""

from __future__ import annotations

import os
from threading import Thread
from typing import Any

from flowbook.exec.kernels import native_rows  # noqa: F401
from flowbook.exec.kernels.machine_code import machine_code
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.options import options
from flowbook.graph.numerics import hot_loop
from flowbook.graph.numerics.hot_loop import Hot

__all__ = ["hot_loops"]

# Behind runs a loop is compiled at most once; its thread is its claim to it.
_threads: dict[Hot, Thread] = {}
_compiled: dict[Hot, Any] = {}
_reasons: dict[Hot, str] = {}


def hot_loops() -> dict[str, str]:
    """Which loops run as machine code, and why the others do not.

    Large draws of random numbers, and what adds rows to variables, run in loops that begin in
    NumPy, and are compiled in the background when they have taken 0.05 s, where llvmlite is
    installed (`pip install llvmlite`). So is, on Linux and x86-64, what divides products of
    matrices among threads. Both forms make the same numbers; the option `machine_code` chooses.

    Returns:
        For each loop by its name "machine code", or "NumPy: " and the reason.

    >>> import flowbook as fb
    >>> [name for name in fb.hot_loops() if name.startswith("uniform")]
    ['uniform float32', 'uniform float64']
    """
    return {name: _told(loop) for name, loop in sorted(hot_loop.loops.items())}


def _told(loop: Hot) -> str:
    if loop.native is not None:
        return "machine code"
    if options.machine_code == "never":
        return "NumPy: options.machine_code is 'never'"
    if loop in _reasons:
        return f"NumPy: {_reasons[loop]}"
    if loop in _threads:
        return "NumPy: being compiled"
    return f"NumPy: ran for {loop.seconds:.2f} s, is compiled after {hot_loop.WORTH} s"


def choose(how: str) -> None:
    """Act on the option `machine_code`.

    Raises:
        UnimplementedError: if it is "now" and a loop cannot be compiled.
    """
    _finish()
    for loop in hot_loop.loops.values():
        if how == "now" and loop not in _compiled:
            _compile(loop)
            if loop in _reasons:
                raise UnimplementedError(
                    f"the loop {loop.name!r} has no machine code: {_reasons[loop]}"
                )
        loop.native = None if how == "never" else _compiled.get(loop)


def compile_behind(loop: Hot) -> None:
    """Start to compile a loop, unless that was tried or the option `machine_code` forbids it."""
    if loop in _threads or options.machine_code == "never":
        return
    # Python waits for it at its end: LLVM must not be torn down while it works.
    thread = Thread(target=_compile, args=(loop,), name=f"compiles {loop.name}", daemon=False)
    if _threads.setdefault(loop, thread) is not thread:
        return
    try:
        thread.start()
    except RuntimeError as error:
        _reasons[loop] = str(error)


def _compile(loop: Hot) -> None:
    try:
        native = machine_code(loop)
    except UnimplementedError as error:
        _reasons[loop] = "; ".join(filter(None, (error.message, error.hint)))
    except Exception as error:  # LLVM's and the loader's own: no run may fail for them.
        _reasons[loop] = f"{type(error).__name__}: {error}"
    else:
        _reasons.pop(loop, None)
        _compiled[loop] = native
        loop.native = native


def _finish() -> None:
    """Wait for what is being compiled."""
    for thread in list(_threads.values()):
        if thread.is_alive():
            thread.join()


if hasattr(os, "register_at_fork"):
    # A forked process has no such thread, but would have the locks that it held.
    os.register_at_fork(before=_finish)
