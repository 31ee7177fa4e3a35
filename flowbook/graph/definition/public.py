"""What makes a function public: errors say what was called and where, without internal frames.

`flowbook/_public.py` does so with all that the package names, so that functions need not: they
raise errors, and check or build as they please. Flowbook's own modules call what they imported of
each other as it is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from flowbook.graph.building.graph import get_default_graph
from flowbook.graph.definition.keywords import misfit
from flowbook.graph.model.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    OpError,
    ResourceExhaustedError,
    without_internal_frames,
)
from flowbook.graph.model.origin import site as sites

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)


# Those whose methods build.
_building: set[type] = set()


def builds(member: Class) -> Class:
    """Mark a class, as a decorator, whose methods build operations: they are made `public`."""
    _building.add(member)
    return member


def as_method_of(member: type, method: Function) -> Function:
    """A method as users call it.

    Of a class that `builds` it says of errors what functions say; others say themselves where
    theirs come from, and only refuse arguments that they do not take.
    """
    return public(method) if member in _building else _refuses_misfits(method)


def public(function: Function, what: str | None = None) -> Function:
    """The same function, as users call it.

    Arguments that it refuses name the user's line. A keyword that it does not take says what to
    write instead.

    Args:
        function: a function, a method or an `__init__`.
        what: what its errors call it, by default its name.
    """
    called = what or function.__qualname__.removesuffix(".__init__")
    plain = inspect.unwrap(function)
    code = plain.__code__
    taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    flags = [(i, n) for i, n in enumerate(taken) if plain.__annotations__.get(n) in _BOOL]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            for place, flag in flags:
                is_placed = place < min(len(args), code.co_argcount)
                given = args[place] if is_placed else kwargs.get(flag)
                if isinstance(given, str):
                    raise _no_flag(flag, given, "name" in taken)
            return function(*args, **kwargs)
        except OpError as error:
            if isinstance(error, InvalidArgumentError):
                error.at(called, get_default_graph().scope.site or sites.capture())
            raise without_internal_frames(error) from error.__cause__
        except _BARE as error:
            within = error.__traceback__
            while within is not None and within.tb_frame.f_code is not code:
                within = within.tb_next
            if within is None:  # The function has not begun.
                explained = misfit(function, args, kwargs)
                if explained is None:
                    raise
                raise explained from None
            if _has_users_frames(within):
                raise
            kind = next(ours for bare, ours in _NAMED if isinstance(error, bare))
            unfit = kind(f"the arguments do not fit: {type(error).__name__}: {error}")
            unfit.at(called, get_default_graph().scope.site or sites.capture())
            raise without_internal_frames(unfit) from error

    return call  # type: ignore[return-value]


def _no_flag(flag: str, given: str, takes_name: bool) -> InvalidTypeError:
    """The error for a string in the place of a bool: TensorFlow 1 has the name there at times."""
    hint = f"a name is given by name={given!r}" if takes_name else None
    return InvalidTypeError(f"{flag!r} is a bool, not {given!r:.80}", hint=hint)


def _refuses_misfits(method: Function) -> Function:

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return method(*args, **kwargs)
        except TypeError:
            explained = misfit(method, args, kwargs)
            del args, kwargs  # An error holds this frame, which is not to hold what was fed.
            if explained is None:
                raise
            raise explained from None
        except BaseException:
            del args, kwargs
            raise

    return call  # type: ignore[return-value]


# How a parameter's annotation says that it is a bool.
_BOOL = (bool, "bool")

# What Python and NumPy raise where functions take for granted what they are given.
_NAMED: tuple[tuple[type[Exception], type[OpError]], ...] = (
    (TypeError, InvalidTypeError),
    (AttributeError, InvalidTypeError),
    (ArithmeticError, InvalidArgumentError),
    (LookupError, InvalidArgumentError),
    (RecursionError, InvalidArgumentError),
    (ValueError, InvalidArgumentError),
    (MemoryError, ResourceExhaustedError),
)
_BARE = tuple(bare for bare, _ in _NAMED)


def _has_users_frames(traceback: TracebackType | None) -> bool:
    while traceback is not None:
        if sites.is_users(traceback.tb_frame.f_code.co_filename):
            return True
        traceback = traceback.tb_next
    return False
