"""How many parameters a model has, scope by scope (white paper, section 6, lesson 1)."""

from __future__ import annotations

from dataclasses import dataclass

from flowbook.exec.report import Report, Table, in_bytes
from flowbook.graph.building.graph import Graph, get_default_graph
from flowbook.graph.model.counted import counted
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.ops.state.variables import Variable

__all__ = ["parameter_counts"]


@dataclass(frozen=True)
class ScopeCount:
    """The variables of one scope and of the scopes in it.

    Attributes:
        scope: the scope's name or a variable's; "" is the whole graph.
        variables: how many there are.
        parameters: their elements.
        bytes: their size.
        unknown: how many have no known size; they count as empty.
    """

    scope: str
    variables: int
    parameters: int
    bytes: int
    unknown: int = 0


class ParameterCounts(Report):
    """Parameters per scope.

    Attributes:
        scopes: the counts by scope, parents before children, in the order of construction.
        total: the count of everything.
    """

    def __init__(self, scopes: dict[str, ScopeCount]) -> None:
        self.scopes = scopes
        self.total = scopes[""]

    def __getitem__(self, scope: str) -> ScopeCount:
        return self.scopes[scope.rstrip("/")]

    @property
    def table(self) -> Table:
        """A row for each scope, children below their parents."""
        rows = [
            (
                "  " * name.count("/") + name.rpartition("/")[2],
                f"{c.variables:,}",
                f"{c.parameters:,}",
                in_bytes(c.bytes),
            )
            for name, c in self.scopes.items()
            if name
        ]
        total = self.total
        notes = []
        if total.unknown:
            unknown = counted(total.unknown, "variable")
            notes.append(f"not counted: {unknown} of unknown shape")
        return Table(
            f"{counted(total.parameters, 'parameter')} in {counted(total.variables, 'variable')}, "
            f"{in_bytes(total.bytes)}",
            ("scope", "variables", "parameters", "size"),
            rows,
            notes,
            (1, 2, 3),
        )


def parameter_counts(
    graph: Graph | None = None, *, trainable: bool | None = True, depth: int | None = None
) -> ParameterCounts:
    """Count the parameters of a graph, scope by scope.

    Args:
        graph: the graph; by default the default graph.
        trainable: which variables count: True the trainable ones, False the others, None all.
        depth: how many levels of scopes are listed; None lists each variable.

    Returns:
        The counts, by scope.

    Source: white paper, section 6: unexpected counts were the first sign of a wrong model.

    >>> import flowbook as fb
    >>> with fb.Graph().as_default(), fb.name_scope("layer"):
    ...     w = fb.Variable(fb.zeros([3, 4]), name="w")
    ...     b = fb.Variable(fb.zeros([4]), name="b")
    ...     fb.parameter_counts(depth=1)
    16 parameters in 2 variables, 64 B
      scope  variables  parameters  size
      layer          2          16  64 B
    """
    if depth is not None and depth < 0:
        raise InvalidArgumentError(f"depth is a number of levels from 0 on, not {depth}")
    graph = graph if graph is not None else get_default_graph()
    found: dict[str, list[Variable]] = {"": []}
    for variable in graph.variables(trainable):
        parts = variable.op.name.split("/")
        for level in range(len(parts) + 1):
            if depth is None or level <= depth:
                found.setdefault("/".join(parts[:level]), []).append(variable)
    ordered = {"": found[""]}
    for name in found:
        _insert(ordered, found, name)
    return ParameterCounts({name: _count(name, members) for name, members in ordered.items()})


def _insert(
    ordered: dict[str, list[Variable]], found: dict[str, list[Variable]], name: str
) -> None:
    """Put a scope and all below it next, so that children follow their parents."""
    if name in ordered:
        return
    ordered[name] = found[name]
    for other in found:
        if other.startswith(name + "/"):
            _insert(ordered, found, other)


def _count(scope: str, variables: list[Variable]) -> ScopeCount:
    sizes = [v.shape.size for v in variables]
    return ScopeCount(
        scope,
        len(variables),
        sum(size or 0 for size in sizes),
        sum((size or 0) * v.dtype.size for size, v in zip(sizes, variables, strict=True)),
        sizes.count(None),
    )
