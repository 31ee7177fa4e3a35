"""Values that hold several arrays: tuples, dicts and tables of columns, taken apart and remade."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.whole_numbers import as_whole


class Leaf(NamedTuple):
    """One of the values that a structure holds.

    Attributes:
        path: where, such as "['image'][0]"; empty if it is the whole.
        value: the value.
    """

    path: str
    value: Any


def leaves(value: Any) -> list[Leaf]:
    """The values that a structure holds, in order.

    Tuples, dicts and tables are structures, and lists that hold arrays.
    """
    return list(_leaves(value, ""))


def _leaves(value: Any, path: str) -> Iterator[Leaf]:
    value = _columns(value)
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path}[{key!r}]")
    elif _is_sequence(value):
        for place, item in enumerate(value):
            yield from _leaves(item, f"{path}[{place}]")
    else:
        yield Leaf(path, value)


def rebuilt(structure: Any, values: Iterator[Any]) -> Any:
    """A structure like another, of other values; of a table a dict by column, of a list a tuple."""
    structure = _columns(structure)
    if isinstance(structure, Mapping):
        return {key: rebuilt(item, values) for key, item in structure.items()}
    if _is_sequence(structure):
        items = [rebuilt(item, values) for item in structure]
        if hasattr(structure, "_fields"):
            return type(structure)(*items)
        return tuple(items)
    return next(values)


def fitting(structure: Any, values: Any) -> list[Any]:
    """The values for the leaves of a structure, in order, given in one like it.

    Raises:
        InvalidArgumentError: if they are not arranged alike.
    """
    structure, values = _columns(structure), _columns(values)
    if isinstance(structure, Mapping):
        if not isinstance(values, Mapping) or set(values) != set(structure):
            raise _differing(f"a dict with {', '.join(map(repr, structure))}", values)
        pairs = [(item, values[key]) for key, item in structure.items()]
    elif _is_sequence(structure):
        if not isinstance(values, list | tuple) or len(values) != len(structure):
            raise _differing(f"a tuple of {len(structure)}", values)
        pairs = list(zip(structure, values, strict=True))
    else:
        return [values]
    return [found for item, value in pairs for found in fitting(item, value)]


def _differing(wanted: str, given: Any) -> InvalidArgumentError:
    return InvalidArgumentError(f"{wanted} is wanted, not the {type(given).__name__} {given!r:.80}")


def _is_sequence(value: Any) -> bool:
    if isinstance(value, list):
        return any(
            hasattr(item, "__array__") and not isinstance(item, np.generic) for item in value
        )
    return isinstance(value, tuple)


def _columns(value: Any) -> Any:
    """The columns of a table of pandas' or pyarrow's by their names; anything else as it is."""
    # Whoever has such a table has imported its package.
    pandas, arrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        _check_names(value.columns)
        return {name: value[name] for name in value.columns}
    if arrow is not None and isinstance(value, arrow.Table | arrow.RecordBatch):
        _check_names(value.schema.names)
        return {name: value.column(name) for name in value.schema.names}
    return value


def _check_names(names: Iterable[Any]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidArgumentError(
                f"{count} columns are called {name!r}", hint="give each a name of its own"
            )


def check_counts(least: int = 1, /, **counts: Any) -> None:
    """See that arguments are integers from `least` on, which is 1 or 0.

    Raises:
        InvalidArgumentError: if one is not.
    """
    for name, number in counts.items():
        whole = as_whole(number)
        if whole is None or whole < least:
            kind = "a positive integer" if least else "an integer from 0 on"
            raise InvalidArgumentError(f"{name} is {kind}, not {number!r}")


def seed_of(shuffle: Any) -> int | None:
    """The seed of an order: as it was given, drawn for True, None for none.

    Raises:
        InvalidTypeError: if it is no seed.
    """
    if shuffle is None or shuffle is False:
        return None
    if shuffle is True:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if not isinstance(shuffle, int | np.integer) or shuffle < 0:
        raise InvalidTypeError(f"shuffle is a seed, an integer from 0 on, not {shuffle!r}")
    return int(shuffle)
