"""A list of arrays of which every version stays as it is: what a `TensorArray` is in a run.

A write gives a new version. The newest version of a list owns the elements; an older one says what
it had where the next one differs. So reading and writing the newest takes as long as in a plain
list, however long it is.

Invariant: a version is used by the thread of its step alone. What reads an element and lets go of
it changes no other element of any version.

Source: Baker, "Shallow Binding Makes Functional Arrays Fast", 1991.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape


class _Nothing:
    """What stands where there is no element."""

    __slots__ = ("why",)

    def __init__(self, why: str) -> None:
        self.why = why


_UNWRITTEN = _Nothing("has not been written")
_LET_GO = _Nothing("was let go of when it was read first")


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds of all versions of a list.

    Attributes:
        name: what errors call it.
        is_dynamic: whether a write beyond its end makes it longer.
        lets_go: whether an element is let go of once it is read.
        is_uniform: whether all elements have one shape.
        adds_up: whether what is written where an element is adds to that. Such a list is zero
            where nothing was written, beyond its end too.
    """

    name: str
    is_dynamic: bool = False
    lets_go: bool = False
    is_uniform: bool = False
    adds_up: bool = False


class TensorList:
    """One version of a list of arrays.

    Args:
        rules: what holds of all versions.
        size: the number of elements, written or not.
        element_shape: what is known of each element's shape.

    Attributes:
        rules, size, element_shape: see above.
    """

    __slots__ = ("_differing", "_elements", "_newer", "_steps", "element_shape", "rules", "size")

    def __init__(self, rules: Rules, size: int, element_shape: Shape) -> None:
        self.rules = rules
        self.size = size
        self.element_shape = element_shape
        # Of the newest version all elements; of others what they had where the next one differs.
        self._elements: dict[int, Any] = {}
        self._differing: dict[int, Any] = {}
        self._newer: TensorList | None = None
        # How many versions have been gone through to find elements of this one.
        self._steps = 0

    def read(self, index: int) -> Any:
        """The element at an index; None where one that adds up is zero.

        Raises:
            InvalidArgumentError: if there is none.
        """
        if not self.rules.adds_up:
            self._check_index(index)
        held = self._held(index)
        found = held.get(index, _UNWRITTEN)
        if type(found) is _Nothing:
            if self.rules.adds_up:
                return None
            raise InvalidArgumentError(
                f"index {index} of the TensorArray {self.rules.name!r} {found.why}",
                hint="clear_after_read=False keeps what is read" if found is _LET_GO else None,
            )
        if self.rules.lets_go:
            held[index] = _LET_GO
        return found

    def has(self, index: int) -> bool:
        """Whether there is an element at an index."""
        return type(self._held(index).get(index, _UNWRITTEN)) is not _Nothing

    def written(self, changes: Mapping[int, Any], replaces: bool = False) -> TensorList:
        """The version with other elements at some indices.

        Args:
            changes: the elements, by their indices.
            replaces: whether they may take the places of others.

        Raises:
            InvalidArgumentError: if there is an element already that may not be replaced, it has
                another shape than the others, or there is no such index.
        """
        rules, shape, size = self.rules, self.element_shape, self.size
        elements = self._owned()
        if rules.adds_up:
            changes = {i: elements[i] + v if i in elements else v for i, v in changes.items()}
        else:
            for index, value in changes.items():
                self._check_writable(index, replaces)
                if value.shape != shape.dims:
                    shape = self._fitting(index, value, shape)
        size = max(size, 1 + max(changes, default=-1))
        newer = self._changed(TensorList(rules, size, shape), changes)
        elements.update(changes)
        return newer

    def without(self, index: int) -> TensorList:
        """The version with no element at an index."""
        newer = self._changed(TensorList(self.rules, self.size, self.element_shape), (index,))
        newer._elements.pop(index, None)
        return newer

    def _changed(self, newer: TensorList, indices: Iterable[int]) -> TensorList:
        """Hand the elements on to a newer version, which is about to change some of them."""
        elements = self._owned()
        self._differing = {i: elements.get(i, _UNWRITTEN) for i in indices}
        newer._elements = elements
        self._elements, self._newer = {}, newer
        return newer

    def plus(self, other: TensorList) -> TensorList:
        """The sum of two lists that add up; it takes as long as the shorter one is."""
        one, changes = self._owned(), other._owned()
        if len(one) < len(changes):
            return other.written(dict(one))
        return self.written(dict(changes))

    def _held(self, index: int) -> dict[int, Any]:
        """The dict in which this version's element at an index stands, if there is one."""
        version, steps = self, 0
        while version._newer is not None:
            if index in version._differing:
                return version._differing
            version, steps = version._newer, steps + 1
        self._steps += steps
        if self._steps > len(version._elements):
            return self._owned()  # From now on it is found at once.
        return version._elements

    def _owned(self) -> dict[int, Any]:
        """The elements of this version, which from now on has them for itself."""
        older = []
        version = self
        while version._newer is not None:
            older.append(version)
            version = version._newer
        if older:
            elements = dict(version._elements)
            for each in reversed(older):
                elements.update(each._differing)
            self._elements = {i: v for i, v in elements.items() if v is not _UNWRITTEN}
            self._differing, self._newer, self._steps = {}, None, 0
        return self._elements

    def _check_index(self, index: int, hint: str | None = None) -> None:
        if not 0 <= index < self.size:
            raise InvalidArgumentError(
                f"there is no index {index} in the TensorArray {self.rules.name!r} of size "
                f"{self.size}",
                hint=hint,
            )

    def _check_writable(self, index: int, replaces: bool) -> None:
        """Refuse an index that there is not, or at which there is an element that has to stay."""
        if not self.rules.is_dynamic:
            self._check_index(index, "dynamic_size=True lets writes make it longer")
        elif index < 0:
            self._check_index(index)
        found = self._elements.get(index)
        if found is not None and not replaces:
            once = " and read" if found is _LET_GO else ""
            raise InvalidArgumentError(
                f"index {index} of the TensorArray {self.rules.name!r} has been written{once} "
                "already",
                hint="each index is written once",
            )

    def _fitting(self, index: int, value: Any, shape: Shape) -> Shape:
        """What is known of the elements' shape once a value is one of them."""
        if not shape.is_compatible_with(value.shape):
            raise InvalidArgumentError(
                f"the elements of the TensorArray {self.rules.name!r} have the shape {shape}, and "
                f"not {list(value.shape)}, as what is written at index {index} has",
                hint="infer_shape=False admits elements of different shapes"
                if self.rules.is_uniform
                else None,
            )
        return Shape.of(value.shape) if self.rules.is_uniform else shape
