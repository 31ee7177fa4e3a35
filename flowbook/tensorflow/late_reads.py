"""Reads of variables by reference, which TensorFlow 1 makes when their value is used.

What reads a reference gives the variable's own memory there, and no copy of it. So a node that runs
after a write finds what was written, though the read that it takes the value from came before: an
average of weights, moved after a step, takes the stepped weights, by the read that the step began
with. Here a read gives a value that stays, and such a node gets a read of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import NamedTuple

from flowbook.tensorflow.nodes import PASSING, Nodes, Source

_BY_REFERENCE = {"Variable", "VariableV2"}
_WRITES = ("Apply", "Assign", "CountUpTo", "Scatter", "SparseApply")


class Late(NamedTuple):
    """What a node reads when it runs.

    Attributes:
        variable: what gives the reference.
        waited: the nodes before it that run after a write.
    """

    variable: Source
    waited: list[str]


def late_reads(nodes: Nodes, order: Iterable[str]) -> Mapping[str, dict[Source, Late]]:
    """What each node reads when it runs, by the reads that it takes values from.

    Args:
        nodes: the nodes.
        order: those that are built, each behind what it takes.
    """
    places = count()
    # For each node that leads to a variable, or to its value, by a reference: which variable.
    behind: dict[str, int] = {}
    # For each Identity what it is a copy of.
    origins: dict[str, Source] = {}
    # For each node the variables that are written when it begins, and when it has ended, as bits.
    begins: dict[str, int] = {}
    ends: dict[str, int] = {}
    found: dict[str, dict[Source, Late]] = {}
    for name in order:
        type, (values, others) = nodes.protos[name].op, nodes.taken[name]
        before = [*(source.node for source in values), *others]
        written = 0
        for each in before:
            written = _either(written, ends.get(each, 0))
        begins[name] = ends[name] = written
        if type in _BY_REFERENCE:
            behind[name] = next(places)
        elif type in PASSING and values and values[0].node in behind:
            behind[name] = behind[values[0].node]
        if type == "Identity" and values:
            origins[name] = origins.get(values[0].node, values[0])
        if type.startswith(_WRITES):
            for source in values:
                ends[name] |= 1 << behind[source.node] if source.node in behind else 0
        for source in values if written else ():
            if source.node in origins and source.node in behind:
                place = behind[source.node]
                if (written & ~begins[source.node]) >> place & 1:
                    waited = [each for each in before if ends.get(each, 0) >> place & 1]
                    found.setdefault(name, {})[source] = Late(origins[source.node], waited)
    return found


def _either(first: int, second: int) -> int:
    """The bits of both: one of the two where it has them all, for there may be many of them."""
    both = first | second
    return first if both == first else second if both == second else both
