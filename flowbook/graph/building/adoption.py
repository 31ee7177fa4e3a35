"""Operations made for a graph join it together, as those of a graph that is imported do.

Where a notebook cell that runs again imports what it has, the present operations stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flowbook.graph.building.names import check_name
from flowbook.graph.model.context import frame_of
from flowbook.graph.model.errors import AlreadyExistsError, OpError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.retag import Retag
from flowbook.graph.redefinition.rebuilt_loops import is_same

if TYPE_CHECKING:
    from flowbook.graph.building.flow import Flow
    from flowbook.graph.building.members import Members


def adopt(members: Members, named: Sequence[tuple[str, Operation]], flow: Flow | None) -> None:
    """Let operations join, each after what it refers to, under exactly these names.

    Args:
        members: the graph's operations.
        named: them, with their names; that of a retired one is `name@generation`.
        flow: what encloses them, if anything.

    Raises:
        AlreadyExistsError: if an operation or a loop of one of the names is there.
    """
    _check_names(members, named)
    _join_all(members, named, flow)


def _check_names(members: Members, named: Sequence[tuple[str, Operation]]) -> None:
    _check_loops(members, [operation for _, operation in named])
    for name, operation in named:
        check_name(name.partition("@")[0] if operation.retired else name)
        present = members.operations.get(name)
        author = operation.site.author
        if present is not None and not (
            author is not None and author.may_take(present.site.author)
        ):
            raise AlreadyExistsError(
                f"the graph has an operation {name!r} already",
                hint="import under a name of its own: name='import'",
            )


def _check_loops(members: Members, operations: Sequence[Operation]) -> None:
    """Refuse to let loops join that others of their names would be joined with."""
    author = next((o.site.author for o in operations), None)
    entering = [o for o in operations if o.op_def.retag is Retag.PUSH]
    taken = {
        o.attributes["frame_name"]
        for o in (members.operations.values() if entering else ())
        if o.op_def.retag is Retag.PUSH
        and not (author is not None and author.may_take(o.site.author))
    }
    for operation in entering:
        if operation.attributes["frame_name"] in taken:
            raise AlreadyExistsError(
                f"the graph has a loop {operation.attributes['frame_name']!r} already",
                hint="import under a name of its own: name='import'",
            )


def _join_all(members: Members, named: Sequence[tuple[str, Operation]], flow: Flow | None) -> None:
    present = _loops_kept(members, named)
    for name, operation in named:
        author = operation.site.author
        kept = present.get(operation)
        if kept is not None:
            members.names.owners[name] = author
            members.keep(kept, operation)
            continue
        if present:
            operation.replace_inputs(present)
        if flow is not None:
            operation.inputs = tuple([flow.captured(t) for t in operation.inputs])
            flow.enclose(operation)
        try:
            members.places.put(operation)
        except OpError as error:
            what = f"{operation.type} {name!r}"
            raise error.at(what, operation.site, operation.inputs) from None
        if operation.retired:
            plain, _, generation = name.partition("@")
            latest = members.generations.get(plain, 0)
            members.join_retired(operation, plain, max(latest + 1, int(generation)))
            continue
        members.names.owners[name] = author
        joined = members.join(operation, name, author)
        if joined is not operation:
            present[operation] = joined
        if flow is not None:
            flow.joined(joined)
    members.places.note_complete(operation for _, operation in named if operation not in present)


def _loops_kept(
    members: Members, named: Sequence[tuple[str, Operation]]
) -> dict[Operation, Operation]:
    """The operations of loops that are there already, if all of the loops are, by the new ones.

    Otherwise new loops are opened by their names.
    """
    in_loops = {o for _, o in named if frame_of(o.context) or o.op_def.retag is Retag.POP}
    before: dict[Operation, Operation] = {}
    for name, operation in named if in_loops else ():
        previous = members.operations.get(name)
        if previous is not None and is_same(operation, previous, before):
            before[operation] = previous
        elif operation in in_loops:
            for each in in_loops:
                if each.op_def.retag is Retag.PUSH:
                    members.places.forget(each.attributes["frame_name"])
            return {}
    return {operation: before[operation] for operation in in_loops}
