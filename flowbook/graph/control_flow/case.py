"""Branches of which there are more than two: `case` and `switch_case`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowbook.graph.building.scopes import control_dependencies
from flowbook.graph.control_flow.cond import as_predicate, branches
from flowbook.graph.control_flow.structure import mapped
from flowbook.graph.definition.composed import composed
from flowbook.graph.model.dtypes import INDICES, int32
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import SCALAR
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.whole_numbers import as_whole
from flowbook.graph.ops.arrays.masking import boolean_mask
from flowbook.graph.ops.basis.constants import convert_to_tensor, group, identity
from flowbook.graph.ops.basis.joining import stack
from flowbook.graph.ops.basis.shaping import size
from flowbook.graph.ops.checks.assertions import Assert
from flowbook.graph.ops.math.comparison import equal, less, where
from flowbook.graph.ops.reduction.reductions import argmax, reduce_any

__all__ = ["case", "switch_case"]

Function = Callable[[], Any]


@composed
def case(
    pred_fn_pairs: Any,
    default: Function | None = None,
    exclusive: bool = False,
    name: str | None = None,
) -> Any:
    """Run the first of several branches whose predicate is true.

    Args:
        pred_fn_pairs: a list of pairs, or a dict, of bool scalars and functions without arguments,
            each of which builds the branch of its predicate, as for `cond`.
        default: the branch if no predicate is true. Without one that is an error in the run.
        exclusive: whether it is an error in the run if several predicates are true; otherwise the
            first of them counts.

    Returns:
        What the branch that runs gives, in the structure that all branches give.

    Raises:
        InvalidTypeError: if the branches differ in structure or dtype, a predicate is no bool, or
            a branch is no function.
        InvalidArgumentError: if there is neither a pair nor a default. In the run: if no predicate
            is true and there is no default, or several are true of which only one may be; it says
            which.

    >>> import flowbook as fb
    >>> x = fb.placeholder(fb.float32, [])
    >>> y = fb.case(
    ...     [(x < 0, lambda: fb.constant("below")), (x > 0, lambda: fb.constant("above"))],
    ...     default=lambda: fb.constant("zero"),
    ... )
    >>> with fb.Session() as sess:
    ...     print([sess.run(y, {x: value}) for value in (-2.0, 0.0, 3.0)])
    [b'below', b'zero', b'above']
    """
    pairs = _pairs(pred_fn_pairs)
    if default is not None:
        _require_function("default", default)
    elif not pairs:
        raise InvalidArgumentError("there is no pair of a predicate and a function")
    predicates = []
    for number, (pred, _) in enumerate(pairs):
        predicate = as_predicate(pred, "case", _NEVER)
        if not predicate.shape.is_compatible_with(SCALAR):
            raise InvalidArgumentError(
                f"predicate {number}, {predicate.name!r}, is no scalar: its shape is "
                f"{predicate.shape}"
            )
        predicates.append(predicate)
    checks = []
    if exclusive and predicates:
        checks.append(_at_most_one(predicates))
    if default is None:
        names = ", ".join(p.name for p in predicates)
        missed = f"no predicate is true, and there is no default: {names}"
        checks.append(Assert(reduce_any(stack(predicates)), [missed]))
    with control_dependencies(checks):
        functions = [function for _, function in pairs]
        if default is not None:
            return _first(predicates, [*functions, default])
        # That one of them is true is checked: what is not one of the others is the last.
        return _first(predicates[:-1], functions)


_NEVER = ("its branch will never run", "no branch after its own will ever run")


def _pairs(given: Any) -> list[tuple[Any, Function]]:
    items = list(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(items, list | tuple):
        raise InvalidTypeError(
            f"pred_fn_pairs is a list of pairs of a predicate and a function, or a dict, not "
            f"{given!r:.80}"
        )
    for number, item in enumerate(items):
        if not isinstance(item, list | tuple) or len(item) != 2:
            raise InvalidTypeError(
                f"pred_fn_pairs[{number}] is no pair of a predicate and a function: {item!r:.80}"
            )
        _require_function(f"pred_fn_pairs[{number}][1]", item[1])
    return [(pred, function) for pred, function in items]


def _require_function(what: str, function: Any) -> None:
    if not callable(function):
        raise InvalidTypeError(
            f"{what} is a function that builds the branch, not {function!r:.80}",
            hint="lambda: ...",
        )


def _at_most_one(predicates: Sequence[Tensor]) -> Any:
    """Fail the step if several predicates are true."""
    names = convert_to_tensor([p.name for p in predicates])
    held = boolean_mask(names, stack(predicates))
    return Assert(size(held) <= 1, ["one predicate alone may be true, but these are:", held], -1)


def _first(predicates: Sequence[Tensor], functions: Sequence[Function], number: int = 0) -> Any:
    """What the function gives of the first predicate that is true; else what the last one gives."""
    if not predicates:
        return functions[0]() if number else _only(functions[0])
    rest = f"branch {number + 1}" + (" and those after it" if len(functions) > 2 else "")
    return branches(
        # A branch is in the branches that its predicate is in.
        identity(predicates[0], name=f"pred_{number}"),
        functions[0],
        lambda: _first(predicates[1:], functions[1:], number + 1),
        (f"branch {number}", rest),
    )


def _only(function: Function) -> Any:
    """What the only branch gives, after all that is waited for."""
    result = function()
    if result is None or isinstance(result, Operation):
        return group([] if result is None else [result])
    return mapped(lambda leaf: identity(convert_to_tensor(leaf)), result)


@composed
def switch_case(
    branch_index: Any,
    branch_fns: Any,
    default: Function | None = None,
    name: str | None = None,
) -> Any:
    """Run one of several branches, by its number.

    Args:
        branch_index: an int32 or int64 scalar.
        branch_fns: a list of functions without arguments, each of which builds a branch as for
            `cond`; or a dict, or a list of pairs, of different ints and functions.
        default: the branch for all other numbers. Without one that is the branch of the largest.

    Returns:
        What the branch that runs gives, in the structure that all branches give.

    Raises:
        InvalidTypeError: if the branches differ in structure or dtype, the index is no integer, a
            number is no int, or a branch is no function.
        InvalidArgumentError: if there is no branch, or two for one number.

    >>> import flowbook as fb
    >>> n = fb.placeholder(fb.int32, [])
    >>> y = fb.switch_case(n, [lambda: fb.constant("none"), lambda: fb.constant("one")])
    >>> with fb.Session() as sess:
    ...     print(sess.run(y, {n: 0}), sess.run(y, {n: 1}), sess.run(y, {n: 7}))
    b'none' b'one' b'one'
    """
    numbered = _numbered(branch_fns)
    if default is not None:
        _require_function("default", default)
    index = convert_to_tensor(branch_index, name="branch_index")
    if index.dtype not in INDICES or not index.shape.is_compatible_with(SCALAR):
        raise InvalidTypeError(
            f"the number of a branch is an int32 or int64 scalar, not a {index.dtype.name} of "
            f"shape {index.shape}"
        )
    numbers = sorted(numbered)
    functions = [numbered[number] for number in numbers]
    if default is None:
        numbers.pop()
    else:
        functions.append(default)
    if not numbers:
        return _only(functions[0])
    matches = equal(index, numbers)
    place = where(reduce_any(matches), argmax(matches, 0, int32), len(numbers))
    return _halved(place, functions, 0)


def _numbered(given: Any) -> dict[int, Function]:
    """The functions by their numbers."""
    items = list(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(items, list | tuple):
        raise InvalidTypeError(f"branch_fns is a list of functions, or a dict, not {given!r:.80}")
    if not items:
        raise InvalidArgumentError("there is no branch")
    if all(callable(item) for item in items):
        items = list(enumerate(items))
    found: dict[int, Function] = {}
    for item in items:
        if not isinstance(item, list | tuple) or len(item) != 2:
            raise InvalidTypeError(
                f"a branch is a function, or a pair of an int and a function, not {item!r:.80}"
            )
        given, function = item
        number = as_whole(given)
        if number is None:
            raise InvalidTypeError(f"the number of a branch is an int, not {given!r:.80}")
        _require_function(f"branch {number}", function)
        if number in found:
            raise InvalidArgumentError(f"there are two branches {number}")
        found[number] = function
    return found


def _halved(place: Tensor, functions: Sequence[Function], first: int) -> Any:
    """What the function gives that stands at a place, counted from `first`."""
    if len(functions) == 1:
        return functions[0]()
    middle = len(functions) // 2
    return branches(
        less(place, first + middle),
        lambda: _halved(place, functions[:middle], first),
        lambda: _halved(place, functions[middle:], first + middle),
        (_described(first, middle), _described(first + middle, len(functions) - middle)),
    )


def _described(first: int, count: int) -> str:
    last = first + count - 1
    return f"branch {first}" if count == 1 else f"branches {first} to {last}"
