"""The calls of templates in a picture: one block that is used several times.

The first call of `fb.template` makes the variables, and is the block; each further call is a block
of its own that leads to it, as a kept call of a function leads to the body. What a further call has
built lies in it still: every value of it can be fetched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from flowbook.graph.model.operation import Operation


def further_calls(
    operations: Sequence[Operation], names: Sequence[str], calls: Mapping[str, str]
) -> dict[str, list[str]]:
    """The name scopes of calls that use what a first call has made, by the scope of that.

    Args:
        operations: those of a graph.
        names: how each is pictured; what lies in loops and branches is in no call's own scope.
        calls: the scopes of all further calls, each with that of the first.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for operation, name in zip(operations, names, strict=True) if calls else ():
        for scope in _around(name):
            first = calls.get(scope)
            if first is None or scope in found[first]:
                continue
            # A cell that ran again may have given the scope to something else.
            if any(tensor.op.name.startswith(first + "/") for tensor in operation.inputs):
                found[first].append(scope)
    return found


def _around(name: str) -> Iterator[str]:
    while name := name.rpartition("/")[0]:
        yield name
