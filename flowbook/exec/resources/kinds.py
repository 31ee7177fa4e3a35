"""What makes resources: for each kind that the graph knows, a function of where it will live.

A module of this folder registers what it holds; the store knows no kind by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, runtime_checkable

from flowbook.exec.devices.device import Device
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.model.touch import ResourceKind


class Definition(NamedTuple):
    """What a resource is made from, in plain data.

    Attributes:
        kind: the name of its kind.
        attributes: those of the operation that owns it.
    """

    kind: str
    attributes: Mapping[str, Any]


class Birth(NamedTuple):
    """What a resource learns when it is made.

    Attributes:
        key: its key.
        attributes: those of the operation that owns it.
        entropy: of the session, for what has no seed.
        announce: to be called with whether it has a value, when that changes.
        device: where it lives.
    """

    key: ResourceKey
    attributes: Mapping[str, Any]
    entropy: int
    announce: Callable[[bool], None]
    device: Device


class Shared(Protocol):
    """What a resource of a kind that named containers share can be asked."""

    @property
    def is_initialized(self) -> bool:
        """Whether it has a value; of a kind without values always false."""

    def adopt(self, definition: Definition) -> str | None:
        """Be what another operation owns, if that is possible; else what it is instead."""

    def forget(self) -> None:
        """Drop its value, if it has one."""


@runtime_checkable
class Announcing(Protocol):
    """What a resource can be asked that announces whether it has a value."""

    def announce_to(self, announce: Callable[[bool], None]) -> None:
        """Announce it to one more, while it cannot change."""


@runtime_checkable
class Stateful(Protocol):
    """What a resource can be asked that has a state beside variables' values."""

    def state(self) -> Any:
        """What a checkpoint keeps of it, in JSON's terms."""

    def set_state(self, state: Any) -> None:
        """Go on from what a checkpoint kept.

        Raises:
            ValueError, TypeError: if that is no such state.
        """

    def forget(self) -> None:
        """Begin afresh."""


@runtime_checkable
class Lockable(Protocol):
    """What a resource can be asked whose state is to be asked for while its lock is held."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """The lock."""


@runtime_checkable
class Closable(Protocol):
    """What a resource can be asked that operations close.

    Attributes:
        is_closed: whether they have.
    """

    is_closed: bool

    def start_over(self) -> None:
        """Be open, and hold nothing."""


@runtime_checkable
class Resident(Protocol):
    """What a resource can be asked that has arrays of its own, which lie on some device.

    Attributes:
        device: where it lives.
    """

    device: Device

    @property
    def is_initialized(self) -> bool:
        """Whether it has a value."""

    @property
    def bytes(self) -> int:
        """How much memory its value takes."""

    def move(self, device: Device) -> None:
        """Have it live on another device, with its value, if it has one."""


class Lasting:
    """A resource that holds something of the world outside, such as an open file."""

    def let_go(self) -> None:
        """Let go of it; the session that had it has ended, or nothing uses it any more."""
        raise NotImplementedError


# What it makes is `Shared` if the kind is.
Maker = Callable[[Birth], Any]

_makers: dict[str, Maker] = {}


def makes(kind: ResourceKind) -> Callable[[Maker], Maker]:
    """Register what makes resources of a kind, as a decorator."""

    def register(maker: Maker) -> Maker:
        _makers[kind.name] = maker
        return maker

    return register


def maker_of(key: ResourceKey, definition: Definition) -> Maker:
    """What makes the resource of a key.

    Raises:
        UnimplementedError: if this process has nothing that makes such a resource.
    """
    maker = _makers.get(definition.kind)
    if maker is None:
        raise UnimplementedError(f"nothing here makes a {definition.kind!r}, as {key.name!r} is")
    return maker
