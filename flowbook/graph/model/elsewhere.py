"""Attributes that TensorFlow 1's classes have and Flowbook's call otherwise: using one says how.

Each is a descriptor of its class. A `__getattr__` would say as much, and make all attributes slow:
Python looks them up where it knows them only in classes without one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

Class = TypeVar("Class", bound=type)


class Elsewhere:
    """An attribute that says what to write instead.

    Attributes:
        name: what it is called.
        instead: what to write.
    """

    def __init__(self, name: str, instead: str) -> None:
        self.name = name
        self.instead = instead

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no {self.name}: use {self.instead}")


def elsewhere(instead: Mapping[str, str]) -> Callable[[Class], Class]:
    """A class whose attributes of those names say what to write instead, as a decorator."""

    def decorate(decorated: Class) -> Class:
        for name, text in instead.items():
            setattr(decorated, name, Elsewhere(name, text))
        decorated.__dir__ = _listed  # type: ignore[assignment]
        return decorated

    return decorate


def _listed(self: Any) -> list[str]:
    """The attributes that an object has, without those that say what to write instead."""
    missing = {n for n, _ in inspect.getmembers_static(type(self), is_elsewhere)}
    return [name for name in object.__dir__(self) if name not in missing]


def is_elsewhere(member: Any) -> bool:
    """Whether a member of a class only says what to write instead."""
    return isinstance(member, Elsewhere)
