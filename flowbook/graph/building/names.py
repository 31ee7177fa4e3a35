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


def name_from(name: str) -> str:
    """A name that can be asked for, from that of a tensor, or of something stale."""
    return name.replace("@", "_").replace(":", "_")


class _Search:
    """Where one author's search for names has come to.

    Attributes:
        suffixes: the next suffix to try, by the name that was asked for.
        taken: what executions of the author's cell took where it was not that name alone, in order.
        earlier: what of it is still to be offered.
    """

    __slots__ = ("earlier", "suffixes", "taken")

    def __init__(self, taken: dict[str, dict[str, None]]) -> None:
        self.suffixes: dict[str, int] = {}
        self.taken = taken
        self.earlier: dict[str, Iterator[str]] = {}


class Names:
    """Unique names, of which an author may take over those of its cell's earlier executions.

    Attributes:
        owners: the author who took each name; None outside notebooks.
    """

    __slots__ = ("_searches", "_taken", "owners")

    def __init__(self) -> None:
        self.owners: dict[str, Author | None] = {}
        self._searches: dict[Author | None, _Search] = {}
        self._taken: weakref.WeakKeyDictionary[Cell, dict[str, dict[str, None]]] = (
            weakref.WeakKeyDictionary()
        )

    def claim(self, name: str, author: Author | None) -> str:
        """A unique name made from `name`, by a suffix where it is taken.

        What an author's cell asks for again keeps its name, also where a shorter one is free by
        now: so it can be told to be the same.
        """
        search = self._searches.get(author)
        if search is None:
            taken = {} if author is None else self._taken.setdefault(author.cell, {})
            search = self._searches[author] = _Search(taken)
        found = self._again(name, author, search) if name in search.taken else None
        if found is None:
            found = self._free(name, author, search)
        self.owners[found] = author
        return found

    def _again(self, name: str, author: Author | None, search: _Search) -> str | None:
        """The next of those that an earlier execution of the author's cell took for this one."""
        earlier, owners = search.earlier, self.owners
        if name not in earlier:
            earlier[name] = iter(tuple(search.taken[name]))
        assert author is not None
        return next((n for n in earlier[name] if author.may_take(owners.get(n))), None)

    def _free(self, name: str, author: Author | None, search: _Search) -> str:
        """The first that nobody has, or who has it leaves it to the author."""
        owners = self.owners
        found = name
        if name in owners and (author is None or not author.may_take(owners[name])):
            suffix = search.suffixes.get(name, 1)
            found = f"{name}_{suffix}"
            while found in owners and (author is None or not author.may_take(owners[found])):
                suffix += 1
                found = f"{name}_{suffix}"
            search.suffixes[name] = suffix + 1
        if author is not None and (found != name or name in search.taken):
            taken = search.taken.setdefault(name, {})
            if not taken and owners.get(name) is author:
                taken[name] = None
            taken[found] = None
        return found

    def give_back(self, name: str, author: Author | None) -> None:
        """Free the name of something that leaves, unless another author has it by now."""
        if self.owners.get(name) is author:
            del self.owners[name]
            self._searches.pop(None, None)

    def put_back(self, owners: dict[str, Author | None]) -> None:
        """Forget what was claimed since `owners` was copied."""
        self.owners = owners
        self._searches.clear()

    def release(self, author: Author, in_use: Container[str]) -> None:
        """Free what earlier executions of the author's cell took, and this one did not."""
        may_take = author.may_take
        for name in [n for n, owner in self.owners.items() if may_take(owner) and n not in in_use]:
            del self.owners[name]
        self._searches.clear()
        for names in self._taken.get(author.cell, {}).values():
            for name in [n for n in names if n not in self.owners]:
                del names[name]

    def release_all(self, cell: Cell) -> None:
        """Free what all executions of a cell took."""
        self.owners = {
            name: owner for name, owner in self.owners.items() if not (owner and owner.cell is cell)
        }
        self._searches.clear()
        self._taken.pop(cell, None)

    def forget_search(self, author: Author) -> None:
        """Drop what only sped up the naming for an execution that has ended."""
        self._searches.pop(author, None)


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
