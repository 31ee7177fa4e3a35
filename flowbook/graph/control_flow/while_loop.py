"""Loops: `while_loop`, whose body runs as often as a condition says in the run (section 4.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flowbook.graph.building.graph import Graph
from flowbook.graph.building.scopes import control_dependencies, name_scope, within
from flowbook.graph.control_flow.calling import require_callable_with
from flowbook.graph.control_flow.flows import Kept, LoopInside
from flowbook.graph.control_flow.routing import (
    check_parallel,
    exit,
    loop_cond,
    merge_op,
    next_iteration_op,
    switch_op,
    taken_into,
)
from flowbook.graph.control_flow.structure import (
    leaves,
    mapped,
    packed_like,
    parts_of,
    paths,
    require_same,
)
from flowbook.graph.control_flow.tensor_array import TensorArray
from flowbook.graph.control_flow.variable_names import variable_names
from flowbook.graph.model import dtypes
from flowbook.graph.model.context import Branch, Frame
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import (
    ConstantConditionWarning,
    InvalidArgumentError,
    InvalidTypeError,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.shape import SCALAR, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.basis.constants import convert_to_tensor, identity, stop_gradient
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.math.comparison import less, logical_and

__all__ = ["while_loop"]


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = True,
    *,
    recompute: bool = False,
) -> Any:
    """Run a body as long as a condition holds, in the run.

    The body's tensors have a value for each iteration; what it uses from outside is computed once,
    before. What acts in the body (writes, draws, prints) runs in each iteration, after all that
    touched something in the iteration before.

    Args:
        cond: called with the loop's variables, gives a bool scalar: whether there is another
            iteration.
        body: called with the loop's variables, gives what they are in the next iteration, in the
            same structure.
        loop_vars: what the variables are at first: a list, tuple or other nested structure of
            tensors, or of what becomes tensors.
        shape_invariants: for each variable, in the same structure, what is known of its shape in
            every iteration; None stands for the shape that it has at first. For a sparse tensor the
            shape of its `dense_shape`, for IndexedSlices that of their `values` may stand; of both
            the number of elements or rows may change anyhow.
        parallel_iterations: how many iterations may be under way at once.
        back_prop: whether gradients flow through the loop; otherwise its results count as
            constants. It costs nothing if none are taken.
        swap_memory: whether what gradients need of each iteration is kept in host memory, and comes
            back when they need it, which on a device with memory of its own takes less of that and
            more time. On a CPU it is there anyway. `fb.forecast` tells how much it is.
        name: the name scope.
        maximum_iterations: an int or an integer scalar: more iterations there are not.
        return_same_structure: whether a single variable is given in the structure of `loop_vars`,
            as a list of one, and not as it is.
        recompute: whether gradients compute an iteration once more, from what its variables were,
            rather than keep what it computed. They are the same bits, for less memory and more
            time; only sums over the iterations of products of matrices are rounded otherwise. What
            touches something, such as draws and reads of variables, is kept, and so is what the
            body takes from arrays and from loops within it.

    Returns:
        What the variables are at last, in the structure of `loop_vars`.

    Raises:
        InvalidTypeError: if structures or dtypes differ, or the condition gives no bool.
        InvalidArgumentError: if a shape changes that is said to stay, or numbers of values differ.

    Warns:
        ConstantConditionWarning: if the condition is a Python bool, or a constant.

    Source: white paper, section 4.4.

    >>> import flowbook as fb
    >>> i, total = fb.while_loop(
    ...     lambda i, total: i < 5, lambda i, total: (i + 1, total + i), (0, 0)
    ... )
    >>> with fb.Session() as sess:
    ...     print(sess.run(total))
    10
    """
    for what, function in (("cond", cond), ("body", body)):
        if not callable(function):
            raise InvalidTypeError(
                f"{what} is a function of the loop's variables, not {function!r:.80}",
                hint="fb.while_loop(cond, body, loop_vars)",
            )
    check_parallel(parallel_iterations)
    if not leaves(loop_vars):
        raise InvalidArgumentError(
            "a loop has at least one variable, by which its condition can come to be false"
        )
    names = variable_names(loop_vars, (body, cond))
    limit = _limit(maximum_iterations)
    if limit is not None:
        names.insert(0, "count")
        loop_vars = (0 if limit.dtype is dtypes.int32 else _zero(limit), loop_vars)
        shape_invariants = None if shape_invariants is None else (None, shape_invariants)
        given_cond, given_body = cond, body

        def cond(count: Tensor, inner: Any) -> Any:
            holds = _called(given_cond, inner, "cond")
            return logical_and(less(count, limit), _condition(holds))

        def body(count: Tensor, inner: Any) -> Any:
            return count + 1, _matched(inner, _called(given_body, inner, "body"))

    with name_scope(name or "while") as prefix:
        options = (parallel_iterations, swap_memory, recompute)
        loop = _Loop(prefix, loop_vars, names, shape_invariants, options)
        with loop.graph.as_default():
            try:
                found = loop.build(cond, body)
            except BaseException:
                loop.graph.members.loops.abandon(loop.frame)
                raise
    if limit is not None:
        found = found[1]
    if not back_prop:
        found = mapped(_stopped, found)
    if not return_same_structure and isinstance(found, list | tuple) and len(found) == 1:
        return found[0]
    return found


def _stopped(tensor: Tensor) -> Tensor:
    is_continuous = tensor.dtype.is_floating or tensor.dtype.is_complex
    return stop_gradient(tensor) if is_continuous else tensor


def _limit(maximum_iterations: Any) -> Tensor | None:
    if maximum_iterations is None:
        return None
    limit = convert_to_tensor(maximum_iterations, name="maximum_iterations")
    if limit.dtype not in dtypes.INDICES or not limit.shape.is_compatible_with(SCALAR):
        raise InvalidTypeError(
            "maximum_iterations is an int32 or int64 scalar, not "
            f"{limit.dtype.name} of shape {limit.shape}"
        )
    return limit


def _zero(like: Tensor) -> Tensor:
    return convert_to_tensor(0, like.dtype)


def _called(function: Callable[..., Any], variables: Any, what: str) -> Any:
    """What a function of the loop's variables gives; a list or tuple of them is its arguments."""
    is_plain = isinstance(variables, list | tuple) and not hasattr(variables, "_fields")
    arguments = variables if is_plain else (variables,)
    require_callable_with(
        function,
        arguments,
        f"{what} cannot be called with the loop's {counted(len(arguments), 'variable')}",
        hint="it takes one argument for each of loop_vars",
    )
    return function(*arguments)


def _matched(variables: Any, given: Any) -> Any:
    """What a body gave, in the structure of the variables: lists and tuples are alike here.

    A single variable may be given by itself.
    """
    if not isinstance(variables, list | tuple) or hasattr(variables, "_fields"):
        return given
    kind = list if isinstance(variables, list) else tuple
    if isinstance(given, list | tuple) and not hasattr(given, "_fields"):
        return kind(given)
    return kind([given]) if len(variables) == 1 else given


def _condition(given: Any) -> Tensor:
    if isinstance(given, list | tuple) and len(given) == 1:
        (given,) = given
    tensor = convert_to_tensor(given)
    if tensor.dtype is not dtypes.bool or not tensor.shape.is_compatible_with(SCALAR):
        raise InvalidTypeError(
            f"the loop's condition gives {tensor.dtype.name} of shape {tensor.shape}, "
            "where a bool scalar is wanted",
            hint="fb.reduce_all or fb.reduce_any makes one of many",
        )
    return tensor


def _warn_of_constant(condition: Tensor) -> None:
    holds = bool(condition.op.attributes["value"])
    outcome = "the loop never ends by itself" if holds else "the body never runs"
    sites.warn(
        f"while_loop: the condition is the constant {holds}, so that {outcome}, unless it is fed",
        ConstantConditionWarning,
    )


class _Loop:
    """A loop that is being built."""

    def __init__(
        self, prefix: str, loop_vars: Any, names: Sequence[str], invariants: Any, options: Any
    ) -> None:
        self.structure = loop_vars
        self.names = names
        self.where = [where for where, _ in paths(loop_vars)]
        for where, leaf in paths(loop_vars):
            if leaf is None or isinstance(leaf, Operation):
                what = "nothing" if leaf is None else f"the operation {leaf.name!r}"
                raise InvalidTypeError(
                    f"the loop's variable {where or 0} begins with {what}, where a tensor is wanted"
                )
        self.first = [convert_to_tensor(leaf) for leaf in leaves(loop_vars)]
        self.graph: Graph = self.first[0].graph
        flow = self.graph.scope.flow
        if flow is not None:
            self.first = [flow.captured(tensor) for tensor in self.first]
        self.shapes = self._invariants(invariants)
        outer = flow.place if flow is not None else None
        self.frame = Frame(prefix.rstrip("/"), outer, *options)
        self.graph.members.loops.open(self.frame)

    def _invariants(self, given: Any) -> list[Shape]:
        """What is known of each variable's shape in all iterations."""
        shapes = [tensor.shape for tensor in self.first]
        said = list(_shapes_like(self.structure, given))
        for index, (shape, tensor) in enumerate(zip(said, self.first, strict=True)):
            if shape is None:
                continue
            if not shape.admits(tensor.shape):
                raise InvalidArgumentError(
                    f"the loop's variable {self._name(index)} begins with the shape "
                    f"{tensor.shape}, which its invariant {shape} does not admit"
                )
            shapes[index] = shape
        return shapes

    def _name(self, index: int) -> str:
        tensor = self.first[index]
        return f"{self.where[index] or 0} ({tensor.name!r})"

    def build(self, cond: Callable[..., Any], body: Callable[..., Any]) -> Any:
        """Build the whole loop; give what its variables are at last."""
        merged = [
            self._merged(tensor, shape, called)
            for tensor, shape, called in zip(self.first, self.shapes, self.names, strict=True)
        ]
        # What waits for an iteration's turn waits for this variable's value, a small one.
        turn = next((i for i, t in enumerate(self.first) if t.shape.rank == 0), 0)
        inside = LoopInside(self.graph, self.frame, merged[turn].op)
        with inside.entered():
            holds = _condition(_called(cond, packed_like(self.structure, merged), "cond"))
            if holds.op.op_def.is_constant:
                _warn_of_constant(holds)
            with control_dependencies(inside.stateful):
                condition = loop_cond(inside.captured(holds))
            switched: list[tuple[Tensor, Tensor]] = [switch_op(t, condition) for t in merged]
            pivot = identity(switched[turn][1], name="pivot")
        is_acting = bool(inside.acting)
        inside.begin_body(Branch(condition, 1, self.frame), pivot.op)
        with inside.entered():
            variables = packed_like(self.structure, [yes for _, yes in switched])
            given = _matched(variables, _called(body, variables, "body"))
            require_same(self.structure, given, "loop_vars", "the loop's body")
            following = [
                inside.held(inside.captured(self._next(i, leaf, merged[i])))
                for i, leaf in enumerate(leaves(given))
            ]
        is_acting |= bool(inside.acting)
        for i, (tensor, merge) in enumerate(zip(following, merged, strict=True)):
            waited = inside.stateful if is_acting and i == turn else []
            self._close(tensor, merge.op, waited)
        kept = [self._kept(inside, each, condition) for each in inside.kept]
        last = [no for no, _ in switched]
        with self._building():
            waited = [identity(last[turn], name="ended").op] if is_acting else []
        with self._building(waited):
            found = [exit(tensor) for tensor in (*last, *kept)]
        before = self.graph.members.loops.complete(self.frame)
        found = [before.get(tensor.op, tensor.op).outputs[0] for tensor in found]
        found, left = found[: len(last)], found[len(last) :]
        for each, tensor in zip(inside.kept, left, strict=True):
            each.then(tensor)
        flow = self.graph.scope.flow
        if flow is not None and inside.has_touched:
            flow.note(found[turn].op, is_acting)
        return packed_like(self.structure, found)

    def _merged(self, first: Tensor, shape: Shape, called: str) -> Tensor:
        """A variable as it is in an iteration."""
        stays = None if shape == first.shape else shape
        entered = taken_into(self.frame, first, shape=stays, variable=called)
        with self._building():
            return merge_op([entered])[0]

    def _kept(self, inside: LoopInside, kept: Kept, condition: Tensor) -> Tensor:
        """What a value was in the iteration before, and so at last; inside."""
        with inside.outside():
            merged = self._merged(kept.first, kept.first.shape, kept.name)
        with self._building():
            last, _ = switch_op(merged, condition)
        with inside.entered():
            following = inside.held(kept.value)
        self._close(following, merged.op, [])
        return last

    def _building(self, waited: Sequence[Operation] = ()) -> Any:
        """Build what routes the loop's values, which nothing from outside is waited for."""
        return within(
            self.graph, lambda scope: scope._replace(flow=None, control_inputs=tuple(waited))
        )

    def _close(self, tensor: Tensor, merge: Operation, waited: Sequence[Operation]) -> None:
        with self._building(waited), within(self.graph, lambda s: s._replace(closes=merge)):
            next_iteration_op(tensor)

    def _next(self, index: int, leaf: Any, merged: Tensor) -> Tensor:
        """What a variable is in the next iteration, seen to fit."""
        dtype, shape = merged.dtype, self.shapes[index]
        if isinstance(leaf, Operation) or leaf is None:
            raise InvalidTypeError(
                f"the loop's body gives no value for the variable {self._name(index)}",
                hint="it returns what each variable is in the next iteration",
            )
        tensor = leaf if isinstance(leaf, Tensor) else convert_to_tensor(leaf, dtype)
        if tensor.dtype is not dtype:
            raise InvalidTypeError(
                f"the loop's variable {self._name(index)} is {dtype.name}, but its body gives "
                f"{tensor.dtype.name}",
                hint="convert one of them by fb.cast",
            )
        if not shape.admits(tensor.shape):
            raise InvalidArgumentError(
                f"the loop's variable {self._name(index)} has the shape {shape}, but its body "
                f"gives {tensor.shape}",
                hint=_invariant_hint(shape, tensor.shape),
            )
        return tensor


def _invariant_hint(shape: Shape, given: Shape) -> str:
    """How to say what is known of a shape in every iteration."""
    both = shape.generalise(given)
    written = "fb.Shape()" if both.dims is None else str(both.as_list())
    hint = f"give it {written} in shape_invariants, which is what holds in every iteration"
    if given.admits(shape):
        hint += "; or, if it keeps its shape, say so in the body by fb.ensure_shape"
    return hint


def _shapes_like(structure: Any, given: Any, where: str = "") -> Iterator[Shape | None]:
    """A shape for each leaf of a structure, or None where nothing is said."""
    if isinstance(structure, TensorArray):
        given = None  # It says itself of which shape its elements are.
    if isinstance(structure, SparseTensor | IndexedSlices) and _is_one_shape(structure, given):
        given = _shapes_of_parts(structure, given)
    parts = parts_of(structure)
    if parts is None:
        yield None if given is None else Shape(given)
        return
    said = [None] * len(parts) if given is None else given
    said = list(said.values()) if isinstance(said, dict) else said
    if isinstance(given, Shape) or not isinstance(said, list | tuple) or len(said) != len(parts):
        raise InvalidArgumentError(
            f"shape_invariants has the structure of loop_vars, where "
            f"{type(structure).__name__}{where and f' {where}'} is of "
            f"{', '.join(name.lstrip('.') for name in parts)}, and not {given!r}",
            hint="None stands for the shapes that there are at first",
        )
    for (name, part), shape in zip(parts.items(), said, strict=True):
        yield from _shapes_like(part, shape, where + name)


def _is_one_shape(item: SparseTensor | IndexedSlices, given: Any) -> bool:
    """Whether nothing is said, or one shape, rather than one for each part."""
    if given is None or isinstance(given, Shape):
        return True
    if not isinstance(given, list | tuple):
        return False
    if isinstance(item, SparseTensor):
        return len(given) == 1
    return any(isinstance(dim, int) for dim in given)


def _shapes_of_parts(item: SparseTensor | IndexedSlices, given: Any) -> list[Shape | None]:
    """A shape for each part, where the number of elements, or of rows, may change."""
    if isinstance(item, SparseTensor):
        known = item.dense_shape.shape if given is None else Shape(given)
        rank = known.with_rank(1)[0]
        return [Shape([None, rank]), Shape([None]), Shape([rank])]
    values = Shape([None]).concatenate(item.values.shape[1:]) if given is None else Shape(given)
    shapes: list[Shape | None] = [values, Shape([values[0]]), None]
    return shapes[: len(parts_of(item) or {})]
