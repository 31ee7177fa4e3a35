"""What a cell's output says about the values of the variables that it made again: a line each.

Only values that exist are mentioned: before a session has run, there is nothing to keep or lose.
"""

from __future__ import annotations

from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin.author import Author
from flowbook.graph.model.touch import VARIABLE
from flowbook.graph.redefinition.wording import plain_name

_MANY = 6  # Longer lists are cut.


def notices_of(author: Author, completed: bool) -> list[str]:
    """The lines for one execution that has ended.

    They say which variables kept their values, and how to reset them; which start afresh because
    they are defined differently; which the cell defines no longer; and which start afresh because
    others do that they belong with, or because it gave them no names. Below an error only losses
    are news.

    Args:
        author: the execution.
        completed: whether its cell ended without an error.
    """
    restarted = list(dict.fromkeys(author.restarted))
    kept = [
        operation
        for operation in dict.fromkeys(author.kept)
        if operation.op_def.owns == VARIABLE.name
        and operation not in restarted
        and operation not in author.renewed
        and operation.graph.values.has_value(operation)
    ]
    changed = [
        f"{new.name} ({_difference(new, old)})"
        for new, old in author.replaced
        if new.op_def.owns == VARIABLE.name and old.graph.values.has_value(old)
    ]
    notices = []
    if kept and completed:
        notices.append(
            f"kept the values of {_listed([op.name for op in kept])} "
            "(sess.run(variable.initializer) starts one afresh)"
        )
    if changed:
        notices.append(f"redefined, with values that start afresh: {_listed(changed)}")
    lost = [op for op in author.dropped if op.graph.values.has_value(op)]
    elsewhere = [plain_name(op) for op in lost if _is_elsewhere(op, author)]
    if elsewhere:
        notices.append(
            f"defined anew, in another graph than before: {_listed(elsewhere)} "
            "(a session runs the graph that it was made for)"
        )
    dropped = [plain_name(op) for op in lost if not _is_elsewhere(op, author)]
    if dropped:
        notices.append(
            f"no longer defined: {_listed(dropped)} "
            "(a value stays only while something refers to it)"
        )
    if author.renewed:
        renewed = sorted(op.name for op in dict.fromkeys(author.renewed))
        notices.append(
            f"the values of {_listed(renewed)} start afresh, as others that they belong with do"
        )
    if restarted:
        notices.append(
            f"the values of {_listed([op.name for op in restarted])} start afresh: the cell makes "
            "other unnamed variables than before (a variable with a name keeps its value)"
        )
    return notices


def _is_elsewhere(operation: Operation, author: Author) -> bool:
    """Whether an execution made an operation by this name in another graph, as after a reset."""
    name = plain_name(operation)
    others = [each for each in author.cell.graphs if each is not operation.graph.members]
    return any(members.has_built(author, name) for members in others)


def _difference(new: Operation, old: Operation) -> str:
    """What makes a variable another one than before."""
    for key in ("dtype", "shape", "trainable"):
        was, now = old.attributes[key], new.attributes[key]
        if was != now:
            return f"{key} {getattr(now, 'name', now)}, was {getattr(was, 'name', was)}"
    if old.attributes["initial_digest"] != new.attributes["initial_digest"]:
        return "another initial value"
    return "another device, container or order"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MANY} more" if len(names) > _MANY else ""
    return ", ".join(names[:_MANY]) + more
