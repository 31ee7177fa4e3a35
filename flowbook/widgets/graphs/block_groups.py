"""What a picture of many blocks draws as one: which of them belong together.

Pure: numbers of blocks, and pairs of them for edges, in; groups out. Everything is in the order of
the blocks' numbers, so that equal graphs give equal groups.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

_ALIKE = 4  # So many blocks of one look and place are drawn as one.

Pairs = set[tuple[int, int]]


@dataclass
class Group:
    """Blocks that are drawn as one.

    Attributes:
        how: "one" block; a "chain" of them, each feeding only the next; or several "alike".
        shown: the numbers of these.
        within: those drawn as part of one: what gives a variable its first value.
    """

    how: str
    shown: list[int]
    within: list[int] = field(default_factory=list)

    @property
    def all(self) -> list[int]:
        """The numbers of all blocks in it."""
        return self.shown + self.within


def single(count: int) -> list[Group]:
    """A group for each block."""
    return [Group("one", [i]) for i in range(count)]


def with_initialisers(
    groups: list[Group], pairs: Pairs, is_variable: Callable[[int], bool]
) -> list[Group]:
    """Draw what needs nothing, and only feeds one variable, as part of the variable.

    Args:
        groups: groups of one block each.
        pairs: the edges between blocks.
        is_variable: whether a block is a variable.
    """
    before, after = _neighbours(pairs)
    into = {
        i: next(iter(after[i]))
        for i in after
        if not before.get(i) and len(after[i]) == 1 and not is_variable(i)
    }
    into = {i: j for i, j in into.items() if is_variable(j)}
    within: dict[int, list[int]] = {}
    for i in sorted(into):
        within.setdefault(into[i], []).append(i)
    return [
        Group("one", group.shown, within.get(group.shown[0], []))
        for group in groups
        if group.shown[0] not in into
    ]


def with_chains(groups: list[Group], pairs: Pairs, is_link: Callable[[Group], bool]) -> list[Group]:
    """Put runs of blocks, each of which only feeds the next, into one group."""
    before, after = _neighbours(_between(groups, pairs))

    def links(g: int) -> bool:
        return is_link(groups[g]) and len(before.get(g, ())) == 1 and len(after.get(g, ())) <= 1

    joined: list[Group] = []
    group_of: dict[int, Group] = {}
    for g, group in enumerate(groups):
        previous = next(iter(before[g])) if links(g) else -1
        if previous in group_of and links(previous):
            chain = group_of[previous]
            chain.how = "chain"
            chain.shown.extend(group.shown)
        else:
            chain = Group(group.how, list(group.shown), group.within)
            joined.append(chain)
        group_of[g] = chain
    return joined


def with_alike(groups: list[Group], pairs: Pairs, look: Callable[[Group], Hashable]) -> list[Group]:
    """Put blocks that look alike, and have the same neighbours, into one group."""
    before, after = _neighbours(_between(groups, pairs))
    alike: dict[Hashable, list[Group]] = {}
    for g, group in enumerate(groups):
        if group.how == "one":
            place = frozenset(before.get(g, ())), frozenset(after.get(g, ()))
            alike.setdefault((look(group), place), []).append(group)
    merged: dict[int, Group | None] = {}
    for found in alike.values():
        if len(found) < _ALIKE:
            continue
        merged.update((id(group), None) for group in found)
        merged[id(found[0])] = Group(
            "alike",
            [i for group in found for i in group.shown],
            [i for group in found for i in group.within],
        )
    kept = [merged.get(id(group), group) for group in groups]
    return [group for group in kept if group is not None]


def _between(groups: list[Group], pairs: Pairs) -> Pairs:
    group_of = {i: g for g, group in enumerate(groups) for i in group.all}
    found = {(group_of[i], group_of[j]) for i, j in pairs if i in group_of and j in group_of}
    return {(g, h) for g, h in found if g != h}


def _neighbours(pairs: Pairs) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    before: dict[int, set[int]] = {}
    after: dict[int, set[int]] = {}
    for source, target in pairs:
        after.setdefault(source, set()).add(target)
        before.setdefault(target, set()).add(source)
    return before, after
