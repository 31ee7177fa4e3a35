"""Kernels run without NumPy's floating-point warnings: infinities and NaNs are values like others.

NumPy keeps how it reports in a context variable. A step runs in a copy of the caller's context, in
which that variable says "ignore": nothing has to be put back, so that no interrupt can prevent it,
and entering costs a fifth of `numpy.errstate`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")


def quietly(function: Callable[..., Result], arguments: Sequence[Any] = ()) -> Result:
    """Call a function while NumPy does not warn of overflow, division by zero and the like."""
    return copy_context().run(_call, function, arguments)


def _call(function: Callable[..., Result], arguments: Sequence[Any]) -> Result:
    _say_nothing(_nothing)
    return function(*arguments)


def _error_state() -> tuple[Callable[[Any], Any], Any]:
    """What sets NumPy's context variable, and its value for "ignore"."""
    context = Context()
    context.run(lambda: np.seterr(all="ignore"))
    ((variable, value),) = context.items()
    return variable.set, value


_say_nothing, _nothing = _error_state()
