"""A tensor: one output of an operation, a value that flows in a run (white paper, section 2).

Python's operators on tensors build operations with NumPy's meaning; `==` stays identity, because
tensors are keys of feeds, so equality of values is `fb.equal`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.registry import op_definitions, op_named

if TYPE_CHECKING:
    from flowbook.graph.building.graph import Graph
    from flowbook.graph.model.dtypes import DType
    from flowbook.graph.model.operation import Operation
    from flowbook.graph.model.shape import Shape

__all__ = ["Tensor"]


# Python's operators, by what NumPy calls them.
_OPERATORS = {
    "add": "Add",
    "bitwise_and": "And",
    "bitwise_or": "Or",
    "bitwise_xor": "Xor",
    "divide": "Div",
    "floor_divide": "FloorDiv",
    "greater": "Greater",
    "greater_equal": "GreaterEqual",
    "left_shift": "LeftShift",
    "less": "Less",
    "less_equal": "LessEqual",
    "matmul": "MatMul",
    "multiply": "Mul",
    "power": "Pow",
    "remainder": "Mod",
    "right_shift": "RightShift",
    "subtract": "Sub",
}


def _build(type_name: str, *args: Any) -> Tensor:
    __tracebackhide__ = True
    tensor: Tensor = op_named(type_name).public(*args)
    return tensor


class Arithmetic:
    """Python's operators, for everything that stands for a tensor (tensors and variables).

    They have NumPy's meaning: `/` is true division, `//` and `%` follow the sign of the divisor.
    `==` compares identity, not values: use `fb.equal(a, b)`.
    """

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's operators build operations: np.ones(3) * x is a Tensor. Its functions do not."""
        __tracebackhide__ = True
        name = ufunc.__name__
        if method == "__call__" and not kwargs:
            if name in _OPERATORS:
                return _build(_OPERATORS[name], *inputs)
            if name in ("equal", "not_equal"):  # Of identity, as everywhere.
                return (inputs[0] is inputs[1]) is (name == "equal")
        own = any(op.is_builtin and op.public.__name__ == name for op in op_definitions().values())
        raise InvalidTypeError(
            f"np.{name} takes arrays, and {self!r} has no values while the graph is built",
            hint=f"use {f'fb.{name}' if own else 'the function of Flowbook'}, or np.{name} on what "
            "sess.run gives",
        )

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise InvalidTypeError(
            f"{self!r} cannot be assigned to: it has no elements while the graph is built",
            hint="sess.run(fb.assign_slice(variable, key, value)) changes a variable, and "
            "fb.tensor_scatter_nd_update gives a changed tensor",
        )

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        raise InvalidTypeError(
            f"{self!r} has no value that {spec!r} could format while the graph is built",
            hint=f'fetch it first: f"{{sess.run(tensor):{spec}}}"; f"{{tensor!s:...}}" is '
            "about its description",
        )

    def __add__(self, other: Any) -> Tensor:
        return _build("Add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _build("Add", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return _build("Sub", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _build("Sub", other, self)

    def __mul__(self, other: Any) -> Tensor:
        if not isinstance(other, Arithmetic) and getattr(other, "is_sparse", False):
            return NotImplemented  # Its own product stays sparse.
        return _build("Mul", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _build("Mul", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return _build("Div", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _build("Div", other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return _build("FloorDiv", self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return _build("FloorDiv", other, self)

    def __mod__(self, other: Any) -> Tensor:
        return _build("Mod", self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return _build("Mod", other, self)

    def __pow__(self, other: Any) -> Tensor:
        return _build("Pow", self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return _build("Pow", other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return _build("MatMul", self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return _build("MatMul", other, self)

    def __neg__(self) -> Tensor:
        return _build("Neg", self)

    def __pos__(self) -> Tensor:
        return _build("Identity", self)

    def __abs__(self) -> Tensor:
        return _build("Abs", self)

    def __lt__(self, other: Any) -> Tensor:
        return _build("Less", self, other)

    def __le__(self, other: Any) -> Tensor:
        return _build("LessEqual", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _build("Greater", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _build("GreaterEqual", self, other)

    def __and__(self, other: Any) -> Tensor:
        return _build("And", self, other)

    def __rand__(self, other: Any) -> Tensor:
        return _build("And", other, self)

    def __or__(self, other: Any) -> Tensor:
        return _build("Or", self, other)

    def __ror__(self, other: Any) -> Tensor:
        return _build("Or", other, self)

    def __xor__(self, other: Any) -> Tensor:
        return _build("Xor", self, other)

    def __rxor__(self, other: Any) -> Tensor:
        return _build("Xor", other, self)

    def __lshift__(self, other: Any) -> Tensor:
        return _build("LeftShift", self, other)

    def __rlshift__(self, other: Any) -> Tensor:
        return _build("LeftShift", other, self)

    def __rshift__(self, other: Any) -> Tensor:
        return _build("RightShift", self, other)

    def __rrshift__(self, other: Any) -> Tensor:
        return _build("RightShift", other, self)

    def __invert__(self) -> Tensor:
        return _build("Not", self)

    def __getitem__(self, key: Any) -> Tensor:
        return _build("StridedSlice", self, key)

    def __contains__(self, value: object) -> NoReturn:
        # Without it Python would compare rows, by identity.
        raise InvalidTypeError(
            f"whether {value!r} is in {self!r} is not known while the graph is built",
            hint="fb.reduce_any(fb.equal(tensor, value)) says it in the run",
        )


# What TensorFlow 1, NumPy and PyTorch have as attributes, of which there is one way here.
_ELSEWHERE = {
    "T": "fb.transpose(tensor)",
    "assign": "fb.assign_slice(variable, key, value) for variable[key]",
    "astype": "fb.cast(tensor, dtype)",
    "backward": "fb.gradients(tensor, variables), or minimize(tensor) of an optimizer",
    "cpu": "sess.run(tensor, feeds), whose arrays are the host's",
    "cuda": "with fb.device('/device:gpu:0'): around what builds it",
    "detach": "fb.stop_gradient(tensor)",
    "dim": "tensor.shape.rank",
    "eval": "sess.run(tensor, feeds)",
    "expand": "fb.broadcast_to(tensor, shape)",
    "flatten": "fb.reshape(tensor, [-1]), or fb.layers.flatten(tensor) of each example",
    "float": "fb.cast(tensor, fb.float32)",
    "get_shape": "tensor.shape",
    "grad": "fb.gradients(loss, [tensor])",
    "item": "sess.run(tensor, feeds)",
    "long": "fb.cast(tensor, fb.int64)",
    "max": "fb.reduce_max(tensor)",
    "mean": "fb.reduce_mean(tensor)",
    "min": "fb.reduce_min(tensor)",
    "ndim": "tensor.shape.rank",
    "numpy": "sess.run(tensor, feeds)",
    "permute": "fb.transpose(tensor, perm)",
    "ref": "the tensor itself, which may be a key",
    "requires_grad": "fb.Variable, or fb.gradients by any tensor",
    "reshape": "fb.reshape(tensor, shape)",
    "size": "tensor.shape, or fb.shape(tensor) in the run",
    "squeeze": "fb.squeeze(tensor)",
    "sum": "fb.reduce_sum(tensor)",
    "to": "fb.cast(tensor, dtype), or with fb.device(name): around what builds it",
    "tolist": "sess.run(tensor, feeds).tolist()",
    "transpose": "fb.transpose(tensor, perm)",
    "unsqueeze": "fb.expand_dims(tensor, axis)",
    "value_index": "tensor.index",
    "view": "fb.reshape(tensor, shape)",
}


@elsewhere(_ELSEWHERE)
class Tensor(Arithmetic):
    """One output of an operation.

    Python's operators on it build operations with NumPy's meaning. `==` compares identity, so that
    tensors can be keys of feeds; `fb.equal(a, b)` compares values.

    Attributes:
        op: the operation that produces it.
        index: which of its outputs (the port in `name:port`).
        dtype: the type of its elements.
        shape: what is known of its shape: what its operation infers, and what `set_shape` said.
    """

    __slots__ = ("__weakref__", "dtype", "index", "op", "shape")

    def __init__(self, op: Operation, index: int, dtype: DType, shape: Shape) -> None:
        self.op = op
        self.index = index
        self.dtype = dtype
        self.shape = shape

    @property
    def name(self) -> str:
        """`operation:port`."""
        return f"{self.op.name}:{self.index}"

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        return self.op.graph

    @property
    def device(self) -> str:
        """The device that was requested for its operation, or an empty string."""
        return self.op.device

    def consumers(self) -> list[Operation]:
        """The operations of the graph that take this tensor as an input, in their order."""
        return self.graph.consumers(self)

    def set_shape(self, shape: Any) -> None:
        """Say what else is known of the shape; what is built from now on knows it too.

        It is not taken on trust: what is built from now on takes the tensor by way of an operation
        that checks it in the run, and what is fed is checked when it is fed. Where a notebook cell
        runs again, what it said before does not hold until it says it again. A function that has a
        tensor of its own says it with `fb.ensure_shape`, which changes nothing elsewhere.

        Args:
            shape: what the shape agrees with; None for dimensions that vary, or for any shape.

        Raises:
            InvalidArgumentError: if it contradicts what is known; in the run, if it is not so.

        >>> import flowbook as fb
        >>> x = fb.placeholder(fb.float32)
        >>> x.set_shape([None, 3])
        >>> x.shape, (x @ fb.ones([3, 5])).shape
        (Shape([None, 3]), Shape([None, 5]))
        """
        op_named("SetShape").public(self, shape)

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape.rank or self.shape.dims is None or self.shape.dims[0] is None:
            what = "is a scalar" if self.shape.rank == 0 else "has a length known only in the run"
            raise InvalidTypeError(
                f"{self.name} {self.shape} cannot be iterated over: it {what}",
                hint="fetch it with sess.run and iterate over the array",
            )
        return (self[i] for i in range(self.shape.dims[0]))

    def __len__(self) -> int:
        if not self.shape.rank or self.shape.dims is None or self.shape.dims[0] is None:
            raise InvalidTypeError(
                f"{self.name} {self.shape} has no length before the run",
                hint="fb.shape(x)[0] is its length as a tensor",
            )
        return self.shape.dims[0]

    def __bool__(self) -> NoReturn:
        raise InvalidTypeError(
            f"{self.name} has no truth value while the graph is built",
            hint="branch with fb.cond, repeat with fb.while_loop, choose between values with "
            "fb.where, write `&`, `|` and `~` for and, or and not, and compare identity with `is`",
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise InvalidTypeError(
            f"{self.name} is symbolic and has no values that NumPy could take",
            hint="fetch it with sess.run, or use Flowbook's function of that name",
        )

    def __float__(self) -> NoReturn:
        self.__array__()

    def __int__(self) -> NoReturn:
        self.__array__()

    def __index__(self) -> NoReturn:
        self.__array__()

    def __repr__(self) -> str:
        return f"<Tensor '{self.name}' shape={self.shape} dtype={self.dtype.name}>"
