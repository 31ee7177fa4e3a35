"""Tables that grow hold what copies of them would hold."""

import gc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flowbook.graph.rewrite.layered import Table, grown, since

_KEYS = st.integers(0, 30)
_PAIRS = st.lists(st.tuples(_KEYS, st.integers()), max_size=4)
_CHANGES = st.lists(st.tuples(st.sampled_from(["put", "update", "setdefault"]), _PAIRS), max_size=3)


def change(table: Table[int, int], how: str, pairs: list[tuple[int, int]]) -> list[Any]:
    """Put pairs into a table in one of the ways in which that is done; what this gives."""
    if how == "update":
        table.update(pairs)
        return []
    if how == "setdefault":
        return [table.setdefault(key, value) for key, value in pairs]
    for key, value in pairs:
        table[key] = value
    return []


def held(table: Table[int, int]) -> Any:
    """All that can be asked of a table."""
    keys = [key for key in range(-1, 32) if key in table]
    asked = [(table[key], table.get(key)) for key in keys]
    rests = [[*since(table, count)] for count in range(len(table) + 2)]
    return keys, asked, table.get(31, "none"), len(table), [*table.items()], rests


@given(_PAIRS, st.lists(_CHANGES, max_size=6))
def test_tables_that_grow_are_like_copies(
    pairs: list[tuple[int, int]], growths: list[list[tuple[str, list[tuple[int, int]]]]]
) -> None:
    table: Table[int, int] = dict(pairs)
    copy = dict(pairs)
    earlier: list[tuple[Table[int, int], Any]] = []
    for changes in growths:
        earlier.append((table, held(table)))
        table, copy = grown(table), copy.copy()
        for how, added in changes:
            assert change(table, how, added) == change(copy, how, added)
        assert held(table) == held(copy)
    for before, was in earlier:
        assert held(before) == was


def shares(table: object, other: object) -> bool:
    return any(each is other for each in gc.get_referents(table))


def test_what_was_there_is_not_copied_until_much_was_added() -> None:
    base = dict.fromkeys(range(100), 0)
    table: Table[int, int] = grown(base)
    for added in range(100, 111):
        table = grown(table)
        assert shares(table, base)
        table[added] = 1
    table = grown(table)
    assert not shares(table, base)
    assert [*table] == [*range(111)]
