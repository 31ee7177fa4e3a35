"""Attributes that TensorFlow 1's classes have and Flowbook's call otherwise: using one says how.

Each is a descriptor of its class. A `__getattr__` would say as much, and make all attributes slow:
Python looks them up where it knows them only in classes without one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

Class = TypeVar("Class", bound=type)


class _Elsewhere:
    """An attribute that says what to write instead."""

    def __init__(self, name: str, instead: str) -> None:
        self._name = name
        self._instead = instead

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no {self._name}: use {self._instead}")


def elsewhere(instead: Mapping[str, str]) -> Callable[[Class], Class]:
    """A class whose attributes of those names say what to write instead, as a decorator."""

    def decorate(decorated: Class) -> Class:
        for name, text in instead.items():
            setattr(decorated, name, _Elsewhere(name, text))
        decorated.__dir__ = _listed  # type: ignore[assignment]
        return decorated

    def _listed(self: Any) -> list[str]:
        return [name for name in object.__dir__(self) if name not in instead]

    return decorate
