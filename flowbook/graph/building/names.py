"""The names that a graph's operations and scopes took, and on whose behalf.

Invariant: a name is in `owners` from the moment it is claimed. An operation that leaves the graph
gives its name back, unless a scope, or its successor, has taken it over.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING

from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError

if TYPE_CHECKING:
    from flowbook.graph.model.origin.author import Author, Cell

_VALID_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*\Z")
_VALID_INNER_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9_.\\/>-]*\Z")


class Names:
    """Unique names, of which an author may take over those of its cell's earlier executions.

    Attributes:
        owners: the author who took each name; None outside notebooks.
    """

    __slots__ = ("_earlier", "_suffixes", "_taken", "owners")

    def __init__(self) -> None:
        self.owners: dict[str, Author | None] = {}
        # Where the search for a free suffix goes on, by author and name.
        self._suffixes: dict[Author | None, dict[str, int]] = {}
        # What executions of each cell took, by the names that were asked for, in that order; and
        # what of it is still to be offered to an author.
        self._taken: weakref.WeakKeyDictionary[Cell, dict[str, dict[str, None]]] = (
            weakref.WeakKeyDictionary()
        )
        self._earlier: dict[Author, dict[str, Iterator[str]]] = {}

    def claim(self, name: str, author: Author | None) -> str:
        """A unique name made from `name`, by a suffix where it is taken.

        What an author's cell asks for again keeps its name, also where a shorter one is free by
        now: so it can be told to be the same.
        """
        if author is None:
            found = self._free(name, None)
        else:
            found = self._again(name, author) or self._free(name, author)
            taken = self._taken.setdefault(author.cell, {})
            taken.setdefault(name, {})[found] = None
        self.owners[found] = author
        return found

    def _again(self, name: str, author: Author) -> str | None:
        """The next of those that an earlier execution of the author's cell took for this one."""
        earlier = self._earlier.setdefault(author, {})
        if name not in earlier:
            earlier[name] = iter(tuple(self._taken.get(author.cell, {}).get(name, ())))
        owners = self.owners
        return next((n for n in earlier[name] if author.may_take(owners.get(n))), None)

    def _free(self, name: str, author: Author | None) -> str:
        """The first that nobody has, or who has it leaves it to the author."""
        owners = self.owners
        if name not in owners or (author is not None and author.may_take(owners[name])):
            return name
        suffixes = self._suffixes.setdefault(author, {})
        suffix = suffixes.get(name, 1)
        candidate = f"{name}_{suffix}"
        while candidate in owners and not (
            author is not None and author.may_take(owners[candidate])
        ):
            suffix += 1
            candidate = f"{name}_{suffix}"
        suffixes[name] = suffix + 1
        return candidate

    def give_back(self, name: str, author: Author | None) -> None:
        """Free the name of something that leaves, unless another author has it by now."""
        if self.owners.get(name) is author:
            del self.owners[name]
            self._suffixes.pop(None, None)

    def put_back(self, owners: dict[str, Author | None]) -> None:
        """Forget what was claimed since `owners` was copied."""
        self.owners = owners
        self._suffixes.clear()
        self._earlier.clear()

    def release(self, author: Author, in_use: Container[str]) -> None:
        """Free what earlier executions of the author's cell took, and this one did not."""
        may_take = author.may_take
        for name in [n for n, owner in self.owners.items() if may_take(owner) and n not in in_use]:
            del self.owners[name]
        self._suffixes.clear()
        for names in self._taken.get(author.cell, {}).values():
            for name in [n for n in names if n not in self.owners]:
                del names[name]

    def release_all(self, cell: Cell) -> None:
        """Free what all executions of a cell took."""
        self.owners = {
            name: owner for name, owner in self.owners.items() if not (owner and owner.cell is cell)
        }
        self._suffixes.clear()
        self._taken.pop(cell, None)

    def forget_search(self, author: Author) -> None:
        """Drop what only sped up the naming for an execution that has ended."""
        self._suffixes.pop(author, None)
        self._earlier.pop(author, None)


def check_name(name: str, prefix: str = "") -> None:
    """Refuse what cannot be a name after the prefix of a scope."""
    if not isinstance(name, str):
        raise InvalidTypeError(f"a name is a string, not {name!r}")
    is_inner = prefix and not name.endswith("/")
    if not (_VALID_INNER_NAME if is_inner else _VALID_NAME).match(name):
        raise InvalidArgumentError(
            f"{name!r} is not a valid name",
            hint="letters, digits and _ . - / > \\, beginning with a letter, a digit or a dot "
            "(inside a name scope also with _)",
        )
