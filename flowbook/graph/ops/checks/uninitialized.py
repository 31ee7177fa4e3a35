"""Which variables have no value yet."""

from __future__ import annotations

from collections.abc import Iterable

from flowbook.graph.building.graph import get_default_graph
from flowbook.graph.building.scopes import control_dependencies, name_scope
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.dtypes import string
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.masking import boolean_mask
from flowbook.graph.ops.basis.constants import constant
from flowbook.graph.ops.basis.joining import stack
from flowbook.graph.ops.math.comparison import logical_not
from flowbook.graph.ops.state.variables import Variable, is_variable_initialized

__all__ = ["report_uninitialized_variables"]


def report_uninitialized_variables(
    var_list: Iterable[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of those variables that have no value yet: a string vector, found in each run.

    Args:
        var_list: the variables to look at; by default all that the default graph has now.
        name: the name scope.
    """
    variables = get_default_graph().variables() if var_list is None else list(var_list)
    graph = variables[0].graph if variables else get_default_graph()
    with graph.as_default(), control_dependencies(None), name_scope(name) as scope:
        names = constant([v.op.name for v in variables], string, [len(variables)])
        known = [is_variable_initialized(v) for v in variables]
        missing = logical_not(stack(known)) if known else constant([], bool_)
        return boolean_mask(names, missing, name=scope)
