"""Templates: functions that build with the same variables whenever they are called."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any, NamedTuple

from flowbook.graph.building.graph import Graph, get_default_graph
from flowbook.graph.building.scopes import name_scope, within
from flowbook.graph.building.sharing import Place, Sharing
from flowbook.graph.control_flow.structure import leaves
from flowbook.graph.functions.predecessors import Predecessors
from flowbook.graph.model.errors import FailedPreconditionError, InvalidTypeError
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.origin.author import Author
from flowbook.graph.ops.state.variables import Variable

__all__ = ["Template", "template"]

_PREDECESSORS: Predecessors[Template] = Predecessors()


class _First(NamedTuple):
    """The call that made the variables.

    Attributes:
        author: the execution of a cell that called, or None outside of cells.
        variables: what it made, which its graph holds.
        prefix: its name scope.
    """

    author: Author | None
    variables: dict[Place, weakref.ref[Variable]]
    prefix: str

    def shared(self, author: Author | None) -> Mapping[Place, Variable] | None:
        """What a call shares; None if it is to make its variables, as the first.

        So is the call of a cell that runs again: what was made in its last execution is made anew
        by this one, or else is gone.
        """
        if self.author is not None and author is not None and author.may_take(self.author):
            return None
        found = {place: reference() for place, reference in self.variables.items()}
        alive = {place: v for place, v in found.items() if v is not None and not v.op.retired}
        return alive if len(alive) == len(found) else None


class Template:
    """A function that builds, with one set of variables for all its calls; see `fb.template`.

    Attributes:
        name: the name scope of its calls.
    """

    def __init__(self, python_function: Callable[..., Any], name: str) -> None:
        self.name = name
        self._python_function = python_function
        self._firsts: weakref.WeakKeyDictionary[Graph, _First] = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, python_function)
        predecessor = _PREDECESSORS.of(self, name, sites.capture().author)
        if predecessor is not None:
            # What other cells call is about to find what they have called before.
            self._firsts.update(predecessor._firsts)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Build what the function builds, in a name scope of its own."""
        author = sites.capture().author
        with name_scope(self.name, values=leaves((args, kwargs))) as prefix:
            graph = get_default_graph()
            first = self._firsts.get(graph)
            known = None if first is None else first.shared(author)
            sharing = Sharing(prefix, known, self._missing, graph.scope.sharing)
            with within(graph, lambda scope: scope._replace(sharing=sharing)):
                result = self._python_function(*args, **kwargs)
            if known is None:
                made = {place: weakref.ref(variable) for place, variable in sharing.taken.items()}
                self._firsts[graph] = _First(author, made, prefix)
            elif first is not None:
                calls = graph.members.template_calls
                calls[prefix.removesuffix("/")] = first.prefix.removesuffix("/")
        return result

    def __get__(self, instance: Any, owner: type) -> Any:
        """The template of a method, of an object; all objects share its variables."""
        return self if instance is None else MethodType(self, instance)

    def variables(self, graph: Graph | None = None) -> list[Variable]:
        """The variables that all calls share, in the order in which the first made them.

        Args:
            graph: by default the default graph.

        Raises:
            FailedPreconditionError: if it has not been called in the graph.
        """
        first = self._firsts.get(get_default_graph() if graph is None else graph)
        if first is None:
            raise FailedPreconditionError(
                f"the template {self.name!r} has no variables yet: its first call makes them",
                hint=f"call {self.name} before",
            )
        found = [reference() for reference in first.variables.values()]
        return list(dict.fromkeys(v for v in found if v is not None))

    def _missing(self, name: str) -> FailedPreconditionError:
        names = [variable.op.name for variable in self.variables()]
        return FailedPreconditionError(
            f"the template {self.name!r} has no variable {name!r}: its first call made "
            f"{', '.join(names) or 'none'}",
            hint="all variables are made in the first call; in a notebook, run its cell again "
            "where the function has changed",
        )

    def __repr__(self) -> str:
        return f"<Template {self.name}>"


def template(function: Callable[..., Any], name: str | None = None) -> Template:
    """Have a function that builds use the same variables whenever it is called.

    The first call in a graph makes them, in the call's name scope. Each further call builds
    everything else anew, in a scope of its own, with a suffix to its name, and finds the variables
    by their names in it: those of layers as those of `fb.Variable`. So a model is applied to
    several inputs, with other arguments or on other devices, and trained as one.

    In a notebook the variables belong to the cell of the first call. When that cell runs again, it
    makes them again, and they keep their values if they are as they were. When the cell runs again
    that makes the template, further calls find them still.

    A stored graph has what calls have built, and knows no templates.

    Args:
        function: called as the template is; what it gives is the call's result.
        name: the name scope of its calls; by default the function's name.

    Returns:
        A `Template`, which is called as the function is, and whose `variables()` are those.

    Raises:
        InvalidTypeError: if it is no function.
        FailedPreconditionError: from a call that asks for a variable that the first did not make.
        InvalidArgumentError: from a call that asks for a variable of another dtype or shape.

    >>> import flowbook as fb
    >>> double = fb.template(lambda x: x * fb.Variable(2.0, name="factor"), "double")
    >>> a, b = double(fb.constant(3.0)), double(fb.constant(4.0))
    >>> [v.name for v in double.variables()], b.name
    (['double/factor:0'], 'double_1/Mul:0')
    >>> with fb.Session() as sess:
    ...     print(*sess.run([a, b]))
    6.0 8.0
    """
    if not callable(function):
        raise InvalidTypeError(f"a template is made of a function, not {function!r:.80}")
    own = getattr(function, "__name__", "template").strip("<>_") or "template"
    return Template(function, own if name is None else name)
