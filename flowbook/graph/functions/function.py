"""Functions that people write: `fb.function`."""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from flowbook.graph.building.graph import Graph, get_default_graph, mixed_graphs
from flowbook.graph.control_flow.calling import require_callable_with
from flowbook.graph.control_flow.structure import leaves, mapped, parts_of, paths
from flowbook.graph.functions.bodies import Argument, built, function_op
from flowbook.graph.functions.calls import copied, kept
from flowbook.graph.functions.definition import Definition, definition_of, is_current
from flowbook.graph.functions.predecessors import Predecessors
from flowbook.graph.model.dtypes import resource
from flowbook.graph.model.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
    NotFoundError,
    OpError,
    without_internal_frames,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.storing import files, graph_file, serialize
from flowbook.graph.storing.stored_values import ValueWriter
from flowbook.graph.transfer.importing import import_graph_def

__all__ = ["Function", "function"]


class Traced(NamedTuple):
    """What a Python function gave for arguments of one kind.

    Attributes:
        arguments: these, with the body's parameters for the tensors among them.
        definition: the body that it built.
        result: the structure of its result; operations stand where it gave operations.
    """

    arguments: dict[str, Any]
    definition: Definition
    result: Any


class Function:
    """A part of a graph with a signature, which is built once and called often.

    `fb.function` makes one of a Python function, and `Function.load` reads one from a file.

    Attributes:
        name: the name scope of its calls.
        inline: whether calls are copies of the body in the graph, and not one operation each.
    """

    def __init__(self, name: str, inline: bool) -> None:
        self.name = name
        self.inline = inline

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it; `fb.function` says what with."""
        raise NotImplementedError

    def definitions(self, graph: Graph | None = None) -> list[Operation]:
        """The Function operations of its bodies in a graph, one for each kind of arguments.

        Args:
            graph: by default the default graph.
        """
        raise NotImplementedError

    def save(self, path: Any, graph: Graph | None = None) -> None:
        """Write its bodies, and all that they refer to, to a file.

        Args:
            path: the file, which `Function.load` and `Graph.load` read.
            graph: where the bodies are; by default the default graph.

        Raises:
            FailedPreconditionError: if it has not been called in the graph.
            UnimplementedError: if an operation holds Python code, as `py_func` does.
            OSError: if the file cannot be written.
        """
        graph = get_default_graph() if graph is None else graph
        found = self.definitions(graph)
        if not found:
            raise FailedPreconditionError(
                f"the function {self.name!r} has no body yet: it is built by the first call",
                hint=f"call {self.name} with tensors of the dtypes and shapes that it is to have",
            )
        with files.written_whole(files.as_path(path)) as file:
            graph_file.write_graph(graph, file, found)

    @staticmethod
    def load(path: Any, name: str | None = None, *, inline: bool = True) -> Function:
        """A function of a stored graph, for the default graph, with all that it refers to.

        Its variables are variables of the default graph. It is called with tensors, in the order
        of its arguments or by their names, and gives a tensor, or a list of several.

        Args:
            path: what `Function.save` or `Graph.save` wrote.
            name: the function's name; it may be left out where there is only one.
            inline: whether calls are copies of its body, and not one operation each.

        Raises:
            NotFoundError: if there is no such file, or no such function in it.
            DataLossError: if the file is damaged, or is not a graph's.
        """
        source = Graph.load(path)
        found = _named(source, name)
        label = found[0].attributes["label"]
        data = serialize.encoded(serialize.as_message(source, ValueWriter(), found))
        imported = import_graph_def(data, None, [op.name for op in found], name=label)
        assert imported is not None
        return _Stored(label, inline, [definition_of(op) for op in imported])  # type: ignore[arg-type]


class _Stored(Function):
    """A function that was read from a file."""

    def __init__(self, name: str, inline: bool, definitions: list[Definition]) -> None:
        super().__init__(name, inline)
        self._definitions = definitions

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        labels = self._definitions[0].labels
        given = dict(zip(labels, args, strict=False))
        is_twice = len(args) > len(labels) or given.keys() & kwargs.keys()
        if is_twice or {*given, *kwargs} != {*labels}:
            raise InvalidTypeError(
                f"the function {self.name!r} cannot be called so",
                hint=f"its arguments are {', '.join(labels) or 'none'}",
            )
        found = [convert_to_tensor({**given, **kwargs}[label]) for label in labels]
        definition = self._fitting(found)
        graph: Graph = definition.function.graph
        with graph.as_default():
            results = _called(definition, found, self.name, self.inline)
        return results[0] if len(results) == 1 else results

    def _fitting(self, tensors: Sequence[Tensor]) -> Definition:
        for definition in self._definitions:
            own = [p for p in definition.parameters if not p.op.settled_by]
            if len(own) == len(tensors) and all(
                p.dtype is t.dtype and p.shape.admits(t.shape)
                for p, t in zip(own, tensors, strict=True)
            ):
                return definition
        given = ", ".join(f"{t.dtype.name} {t.shape}" for t in tensors)
        raise InvalidArgumentError(
            f"no body of the function {self.name!r} takes {given}",
            hint="; ".join(_signature(each) for each in self._definitions),
        )

    def definitions(self, graph: Graph | None = None) -> list[Operation]:
        graph = get_default_graph() if graph is None else graph
        return [d.function for d in self._definitions if d.function.graph is graph]

    def __repr__(self) -> str:
        return f"<Function {'; '.join(_signature(each) for each in self._definitions)}>"


def _signature(definition: Definition) -> str:
    own = [p for p in definition.parameters if not p.op.settled_by]
    arguments = [f"{p.op.attributes['label']}: {p.dtype.name} {p.shape}" for p in own]
    results = [f"{t.dtype.name} {t.shape}" for t in definition.results]
    label = definition.function.attributes["label"]
    return f"{label}({', '.join(arguments)}) -> {', '.join(results)}"


def _named(graph: Graph, name: str | None) -> list[Operation]:
    """The Functions of a name in a graph."""
    functions = [op for op in graph.operations if op.op_def is function_op]
    labels = list(dict.fromkeys(op.attributes["label"] for op in functions))
    if name is None and len(labels) == 1:
        [name] = labels
    found = [op for op in functions if op.attributes["label"] == name]
    if not found:
        what = "one function" if name is None else f"a function {name!r}"
        raise NotFoundError(
            f"the stored graph has not {what}",
            hint=f"it has {', '.join(map(repr, labels)) or 'none'}",
        )
    return found


_PREDECESSORS: Predecessors[_Written] = Predecessors()


class _Written(Function):
    """A function that builds its bodies by a Python function."""

    def __init__(self, python_function: Callable[..., Any], name: str, inline: bool) -> None:
        super().__init__(name, inline)
        self._python_function = python_function
        self._signature = inspect.signature(python_function)
        self._traced: weakref.WeakKeyDictionary[Graph, dict[Any, Traced]] = (
            weakref.WeakKeyDictionary()
        )
        self._building = threading.local()
        self._author = sites.capture().author
        functools.update_wrapper(self, python_function)
        predecessor = _PREDECESSORS.of(self, name, self._author)
        if predecessor is not None and self._author is not None:
            # Not now: it may be called with what the cell has not built again yet.
            self._author.at_end(functools.partial(self._redefine, predecessor))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        require_callable_with(
            functools.partial(self._python_function, **kwargs),
            args,
            f"the function {self.name!r} cannot be called so",
            hint=f"its signature is {self.name}{self._signature}",
        )
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = mapped(_as_tensor, dict(bound.arguments))
        tensors = [leaf for leaf in leaves(arguments) if _is_given(leaf)]
        graph = _graph_of(self.name, tensors)
        with graph.as_default():
            traced = self._trace(graph, arguments)
            found = _called(traced.definition, tensors, self.name, self.inline)
        return _result(traced.result, found)

    def definitions(self, graph: Graph | None = None) -> list[Operation]:
        graph = get_default_graph() if graph is None else graph
        return [traced.definition.function for traced in self._traced.get(graph, {}).values()]

    def _trace(self, graph: Graph, arguments: dict[str, Any]) -> Traced:
        """The body for arguments of a kind, which the first call with such arguments builds."""
        known = self._traced.setdefault(graph, {})
        key = _kind(arguments, self.name)
        traced = known.get(key)
        if traced is None or not is_current(traced.definition.function):
            traced = known[key] = self._build(graph, arguments)
        return traced

    def _redefine(self, predecessor: _Written) -> None:
        """Build anew what an earlier execution of the same cell has built of its function.

        A body that is as it was stays; calls of one that is not are stale.
        """
        for graph, known in predecessor._traced.items():
            for traced in known.values():
                if not traced.definition.function.retired:
                    # What cannot be built, or is interrupted, says so when it is called.
                    with suppress(Exception, KeyboardInterrupt), graph.as_default():
                        self._trace(graph, traced.arguments)

    def _build(self, graph: Graph, arguments: dict[str, Any]) -> Traced:
        if getattr(self._building, "is_under_way", False):
            raise InvalidArgumentError(
                f"the function {self.name!r} calls itself, so that its body would never end",
                hint="fb.while_loop repeats something, as often as a condition says in the run",
            )
        inner: dict[str, Any] = {}
        result: Any = None

        def body(given: list[Tensor]) -> Sequence[Any]:
            nonlocal result
            rest = iter(given)
            inner.update(mapped(lambda leaf: next(rest) if _is_given(leaf) else leaf, arguments))
            bound = inspect.BoundArguments(self._signature, inner)
            result = self._python_function(*bound.args, **bound.kwargs)
            return [leaf for leaf in leaves(result) if leaf is not None] or [True]

        parameters = [
            Argument(_label(where), leaf.dtype, leaf.shape)
            for where, leaf in paths(arguments)
            if _is_given(leaf)
        ]
        self._building.is_under_way = True
        try:
            definition = sites.on_behalf_of(
                self._author, lambda: built(graph, self.name, parameters, body)
            )
        except OpError as error:
            error.details.append(f"in the function {self.name!r}, called at {sites.capture()}")
            raise without_internal_frames(error) from error.__cause__
        finally:
            self._building.is_under_way = False
        return Traced(inner, definition, result)

    def __repr__(self) -> str:
        return f"<Function {self.name}{self._signature}>"


def _called(
    definition: Definition, tensors: Sequence[Tensor], name: str, inline: bool
) -> list[Tensor]:
    """What a call of a body gives."""
    found = (copied if inline else kept)(definition, tensors, name)
    return found[: len(definition.results)]


def function(
    python_function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    inline: bool = True,
) -> Any:
    """Make a component of a Python function that builds: its body is built once, as a decorator.

    The body is built by the first call with arguments of a kind: tensors and arrays count by dtype
    and shape, everything else, such as numbers and strings, as it is. What it uses from outside by
    its name is an input of every call; variables that it makes are made once, and shared. What acts
    in it (writes, draws, prints) runs wherever a call runs, whether or not a result depends on it,
    and every call draws numbers of its own.

    A call is a copy of the body in the graph, under a name scope of its own. With `inline=False` it
    is one operation, and the copy is made when something runs or looks into it: its tensors have
    names all the same, such as "layer/MatMul:0", and can be fetched and fed. The gradient of such
    a call is such a call too. It computes what it needs of the body once more; in a run what is
    computed equally is computed once, and in a loop it saves memory for time.

    In a notebook the body belongs to the cell that defines the function. When that cell runs again
    and the body is another one, what was called before is stale.

    Args:
        python_function: called with tensors in the place of those, and arrays, that a call gives;
            gives a tensor, an operation, None, or a nested structure of tensors and operations.
        name: the name scope of its calls; by default the Python function's name.
        inline: whether calls are copies of the body in the graph, and not one operation each.

    Returns:
        A `Function`, which is called as the Python function is, in any graph.

    Raises:
        InvalidTypeError: if it is no function; from a call, if arguments do not fit its signature,
            or one that is no tensor cannot be a key of a dict.
        InvalidArgumentError: from a call, if the function calls itself.
        UnimplementedError: from `gradients` of a call with `inline=False`, if what acted in a loop
            or a branch of it would have to act once more.

    >>> import flowbook as fb
    >>> @fb.function
    ... def layer(x, units):
    ...     w = fb.Variable(lambda: fb.ones([x.shape[1], units]), name="w")
    ...     return fb.nn.relu(fb.matmul(x, w))
    >>> x = fb.placeholder(fb.float32, [1, 2], name="x")
    >>> y = layer(layer(x, 2), 2)
    >>> y.name, [v.name for v in fb.get_default_graph().variables()]
    ('layer_1/Relu:0', ['functions/layer/w:0'])
    >>> with fb.Session() as sess:
    ...     print(sess.run(y, {x: [[1.0, 2.0]]}))
    [[6. 6.]]
    """
    if python_function is None:
        return functools.partial(function, name=name, inline=inline)
    if not callable(python_function):
        raise InvalidTypeError(f"a function is decorated, not {python_function!r:.80}")
    own = getattr(python_function, "__name__", "function").strip("<>_") or "function"
    return _Written(python_function, name or own, inline)


def _is_given(leaf: Any) -> bool:
    """Whether a leaf of the arguments is one that each call gives, and not a part of what it is."""
    return isinstance(leaf, Tensor) and leaf.dtype is not resource


def _as_tensor(leaf: Any) -> Any:
    return convert_to_tensor(leaf) if isinstance(leaf, np.ndarray) else leaf


def _graph_of(name: str, tensors: Sequence[Tensor]) -> Graph:
    graph = tensors[0].graph if tensors else get_default_graph()
    if any(tensor.graph is not graph for tensor in tensors):
        raise mixed_graphs([(tensor.name, tensor.graph) for tensor in tensors])
    return graph


def _kind(arguments: Any, name: str) -> Any:
    """What arguments have to have in common for one body to serve them."""
    parts = parts_of(arguments)
    if parts is not None:
        return type(arguments), tuple([(key, _kind(part, name)) for key, part in parts.items()])
    if _is_given(arguments):
        return Tensor, arguments.dtype, arguments.shape
    anchor = None if isinstance(arguments, Tensor) else getattr(arguments, "op", None)
    if isinstance(anchor, Operation):
        # A cell that runs again makes a variable or a queue anew, of the operation that it has.
        return type(arguments), anchor
    try:
        hash(arguments)
    except TypeError:
        raise InvalidTypeError(
            f"the function {name!r} is given {arguments!r:.80}, which cannot be compared with what "
            "other calls give",
            hint="give tensors, and what can be a key of a dict",
        ) from None
    return type(arguments), arguments


def _label(where: str) -> str:
    """The name of an argument, by where it stands among all of them: "x" for "['x']"."""
    name, bracket, rest = where[2:].partition("']")
    return name + rest if bracket else where


def _result(structure: Any, found: Sequence[Tensor]) -> Any:
    rest = iter(found)

    def leaf(given: Any) -> Any:
        if given is None:
            return None
        return next(rest).op if isinstance(given, Operation) else next(rest)

    made = mapped(leaf, structure)
    return found[0].op if structure is None else made
