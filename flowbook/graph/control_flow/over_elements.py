"""Functions of each element along the first dimension: `map_fn`, `scan`, `foldl`, `foldr`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flowbook.graph.building.flow import Taken
from flowbook.graph.control_flow.structure import (
    leaves,
    mapped,
    packed_like,
    parts_of,
    paths,
    require_same,
)
from flowbook.graph.control_flow.tensor_array import TensorArray
from flowbook.graph.control_flow.while_loop import while_loop
from flowbook.graph.definition.composed import composed
from flowbook.graph.model.dtypes import as_dtype
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import shape_op
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor

__all__ = ["foldl", "foldr", "map_fn", "scan"]

# Arguments of `while_loop`, by name.
Options = Mapping[str, Any]


class Elements:
    """What functions are called with: a structure of the elements at one index.

    Args:
        elems: a tensor, or a nested structure of them, of one first dimension.
        name: what errors call it.

    Attributes:
        structure: the tensors.
        count: how many elements there are: an int, or a scalar where only the run knows.
    """

    def __init__(self, elems: Any, name: str = "elems") -> None:
        self.structure, self.count = counted(elems, name)
        # They are parts of the tensors: letting go of one that was read would free nothing, and a
        # loop that a cell has since built otherwise may still read what that cell built as before.
        self._arrays = [
            TensorArray(
                tensor.dtype,
                self.count,
                clear_after_read=False,
                tensor_array_name=where,
                name=name,
            ).unstack(tensor)
            for where, tensor in paths(self.structure, name)
        ]

    def at(self, index: Any) -> Any:
        """The elements at an index."""
        found = [array.read(index) for array in self._arrays]
        flow = found[0].graph.scope.flow
        if flow is not None:
            for element, whole in zip(found, leaves(self.structure), strict=True):
                flow.take(element, Taken(whole, lambda other: _element(other, index)))
        return packed_like(self.structure, found)


def _element(whole: Tensor, index: Any) -> Tensor:
    """The element at an index, of a tensor from outside of the loop that is being built."""
    flow = whole.graph.scope.flow
    assert flow is not None
    with flow.outside():
        elements = Elements(whole)
    element: Tensor = elements.at(index)
    return element


def counted(elems: Any, name: str = "elems") -> tuple[Any, Any]:
    """A structure of tensors that have elements, and how many: see `Elements`."""
    _refuse_others(elems, name)
    structure = mapped(convert_to_tensor, elems)
    named = list(paths(structure, name))
    if not named:
        raise InvalidArgumentError("there is no tensor whose elements could be taken")
    count: Any = None
    for where, tensor in named:
        if tensor.shape.rank == 0:
            raise InvalidArgumentError(
                f"{where} is a scalar, and has no elements",
                hint="lists are structures of tensors: fb.constant(...) makes one tensor",
            )
        known = tensor.shape[0]
        if None not in (known, count) and known != count:
            counts = ", ".join(f"{w} {t.shape}" for w, t in named)
            raise InvalidArgumentError(f"not all have as many elements: {counts}")
        count = known if count is None else count
    return structure, shape_op(named[0][1])[0] if count is None else count


def _refuse_others(item: Any, where: str) -> None:
    """Refuse what consists of tensors, but has other elements than they have."""
    if isinstance(item, SparseTensor | IndexedSlices | TensorArray):
        raise InvalidTypeError(
            f"the elements are those of tensors, but {where} is a {type(item).__name__}"
        )
    for name, part in (parts_of(item) or {}).items():
        _refuse_others(part, where + name)


@composed("map")
def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    *,
    recompute: bool = False,
) -> Any:
    """What a function gives for each element along the first dimension, in a loop.

    What is elementwise anyway, or a product of matrices, is faster on the whole tensor:
    `vectorized_map` computes that of all elements at once.

    Args:
        fn: called with one element, or the structure of them, gives a tensor or a structure of
            them.
        elems: a tensor, or a nested structure of tensors of one first dimension.
        dtype: the dtypes of what `fn` gives, in the same structure. By default `fn` gives the
            structure and the dtypes of `elems`.
        parallel_iterations: how many calls may be under way at once.
        back_prop: as for `while_loop`.
        swap_memory: as for `while_loop`.
        infer_shape: whether `fn` gives the same shapes each time, as it has to for a result.
        recompute: as for `while_loop`.

    Returns:
        What `fn` gives, one upon the other, in its structure.

    Raises:
        InvalidTypeError: if `fn` gives another structure, or other dtypes.
        InvalidArgumentError: if a tensor has no first dimension, or these differ.

    >>> import flowbook as fb
    >>> lengths = fb.constant([1, 3, 2])
    >>> sums = fb.map_fn(lambda n: fb.reduce_sum(fb.range(n)), lengths)
    >>> with fb.Session() as sess:
    ...     print(sess.run(sums))
    [0 3 1]
    """
    require_function(fn)
    elements = Elements(elems)
    wanted = mapped(lambda t: t.dtype, elements.structure) if dtype is None else dtype
    outputs = [
        TensorArray(as_dtype(d), elements.count, infer_shape=infer_shape, name="outputs")
        for d in leaves(wanted)
    ]

    def body(index: Tensor, outputs: list[TensorArray]) -> Any:
        given = fn(elements.at(index))
        what = "elems" if dtype is None else "dtype"
        _require_like(wanted, given, what, "dtype says by its structure what fn gives")
        return index + 1, noted(outputs, index, given)

    _, outputs = while_loop(
        lambda index, _: index < elements.count,
        body,
        (0, outputs),
        parallel_iterations=parallel_iterations,
        back_prop=back_prop,
        swap_memory=swap_memory,
        recompute=recompute,
    )
    return packed_like(wanted, [output.stack() for output in outputs])


@composed
def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
    *,
    recompute: bool = False,
) -> Any:
    """What a function makes of the elements so far, at each of them.

    Args:
        fn: called with what it gave last and the next element, gives the same structure, dtypes
            and shapes as what it gave last.
        elems: a tensor, or a nested structure of tensors of one first dimension.
        initializer: what `fn` is first called with; by default the first element, for which `fn`
            is not called.
        parallel_iterations: how many iterations may be under way at once.
        back_prop: as for `while_loop`.
        swap_memory: as for `while_loop`.
        infer_shape: whether the result's shape is that of `initializer` at each element.
        reverse: whether the last element comes first.
        recompute: as for `while_loop`.

    Returns:
        What `fn` gives at each element, one upon the other, in its structure.

    Raises:
        InvalidTypeError: if `fn` gives another structure, or other dtypes.
        InvalidArgumentError: if a tensor has no first dimension, these differ, or there is neither
            an element nor an initializer.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.scan(lambda total, x: total + x, fb.constant([1, 2, 3, 4]))))
    [ 1  3  6 10]
    """
    require_function(fn)
    loop = _Accumulation(fn, elems, initializer, reverse)
    outputs = [
        TensorArray(
            state.dtype,
            loop.elements.count,
            infer_shape=infer_shape,
            element_shape=state.shape if infer_shape else None,
            name="outputs",
        )
        for state in leaves(loop.first)
    ]
    if loop.begin:
        outputs = noted(outputs, loop.place(0), loop.first)
    options = _options(parallel_iterations, back_prop, swap_memory, recompute)
    outputs = loop.run(outputs, options)[1]
    return packed_like(loop.first, [output.stack() for output in outputs])


_FOLDED = """What a function makes of all elements, from the {first} to the {last}.

    Args:
        fn: called with what it gave last and the next element, gives the same structure, dtypes
            and shapes as what it gave last.
        elems: a tensor, or a nested structure of tensors of one first dimension.
        initializer: what `fn` is first called with; by default the {first} element, for which `fn`
            is not called.
        parallel_iterations: how many iterations may be under way at once.
        back_prop: as for `while_loop`.
        swap_memory: as for `while_loop`.
        recompute: as for `while_loop`.

    Returns:
        What `fn` gives at the {last} element.

    Raises:
        InvalidTypeError: if `fn` gives another structure, or other dtypes.
        InvalidArgumentError: if a tensor has no first dimension, these differ, or there is neither
            an element nor an initializer.

    >>> import flowbook as fb
    >>> digits = fb.constant([1, 2, 3])
    >>> with fb.Session() as sess:
    ...     print(sess.run(fb.{name}(lambda number, digit: 10 * number + digit, digits)))
    {result}
    """


def _folding(name: str, first: str, last: str, result: int) -> Callable[..., Any]:
    """One of the two directions: `result` is what its example gives."""

    def fold(
        fn: Callable[[Any, Any], Any],
        elems: Any,
        initializer: Any = None,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str | None = None,
        *,
        recompute: bool = False,
    ) -> Any:
        require_function(fn)
        accumulation = _Accumulation(fn, elems, initializer, is_reverse=first == "last")
        options = _options(parallel_iterations, back_prop, swap_memory, recompute)
        return accumulation.run([], options)[0]

    fold.__name__ = fold.__qualname__ = name
    fold.__doc__ = _FOLDED.format(name=name, first=first, last=last, result=result)
    return composed(fold)


def _options(
    parallel_iterations: int, back_prop: bool, swap_memory: bool, recompute: bool
) -> Options:
    return {
        "parallel_iterations": parallel_iterations,
        "back_prop": back_prop,
        "swap_memory": swap_memory,
        "recompute": recompute,
    }


class _Accumulation:
    """A loop over elements, each of which a function joins to what it made of those before.

    Args:
        fn: the function.
        elems: the elements.
        initializer: what they are joined to; None for the first of them.
        is_reverse: whether the last is the first.

    Attributes:
        elements: the elements.
        first: what the function is first called with.
        begin: how many elements it is not called for.
    """

    def __init__(
        self, fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, is_reverse: bool
    ) -> None:
        self._fn = fn
        self._is_reverse = is_reverse
        self.elements = Elements(elems)
        self.begin = int(initializer is None)
        if initializer is not None:
            self.first = mapped(convert_to_tensor, initializer)
            return
        if isinstance(self.elements.count, int) and not self.elements.count:
            raise InvalidArgumentError(
                "there is no element to begin with", hint="initializer says what to begin with"
            )
        self.first = self.elements.at(self.place(0))

    def place(self, step: Any) -> Any:
        """The index of the element that comes at a step."""
        return self.elements.count - 1 - step if self._is_reverse else step

    def run(self, outputs: list[TensorArray], options: Options) -> tuple[Any, list[TensorArray]]:
        """What the function gives at last, and arrays of what it gives at each element."""

        def body(step: Tensor, state: Any, outputs: list[TensorArray]) -> Any:
            index = self.place(step)
            given = self._fn(state, self.elements.at(index))
            what = "the first element" if self.begin else "initializer"
            dtypes = mapped(lambda tensor: tensor.dtype, self.first)
            _require_like(dtypes, given, what, "initializer says by its dtypes what fn gives")
            self._check_shapes(given, what)
            return step + 1, given, noted(outputs, index, given)

        _, state, outputs = while_loop(
            lambda step, state, outputs: step < self.elements.count,
            body,
            (self.begin, self.first, outputs),
            **options,
        )
        return state, outputs

    def _check_shapes(self, given: Any, what: str) -> None:
        for (where, leaf), first in zip(paths(given), leaves(self.first), strict=True):
            shape = convert_to_tensor(leaf, first.dtype).shape
            if not first.shape.admits(shape):
                place = f" at {where}" if where else ""
                raise InvalidArgumentError(
                    f"fn gives the shape {shape}{place}, but {what} has the shape {first.shape}"
                )


def noted(outputs: list[TensorArray], index: Any, given: Any) -> list[TensorArray]:
    """Arrays with the leaves of a structure more, at an index."""
    pairs = zip(outputs, leaves(given), strict=bool(outputs))
    return [output.write(index, leaf) for output, leaf in pairs]


def require_function(fn: Any) -> None:
    """Refuse what is no function."""
    if not callable(fn):
        raise InvalidTypeError(f"fn is a function of an element, not {fn!r:.80}")


def _require_like(dtypes: Any, given: Any, what: str, hint: str) -> None:
    """Refuse what a function gives if it has another structure or other dtypes."""
    require_same(dtypes, given, what, "fn", hint=hint)
    for (where, leaf), dtype in zip(paths(given), leaves(dtypes), strict=True):
        place = f" at {where}" if where else ""
        if leaf is None or isinstance(leaf, Operation):
            raise InvalidTypeError(
                f"fn gives no value{place}, where {as_dtype(dtype).name} is wanted",
                hint="the function returns what it makes of the element",
            )
        if isinstance(leaf, Tensor) and leaf.dtype is not as_dtype(dtype):
            raise InvalidTypeError(
                f"fn gives {leaf.dtype.name}{place}, where {as_dtype(dtype).name} is wanted",
                hint=hint,
            )


foldl = _folding("foldl", "first", "last", 123)
foldr = _folding("foldr", "last", "first", 321)
