"""Registers the static forms of Flowbook's types with IPython's display formatter.

Their plain text is their `repr`. Everything is deterministic and free of addresses, so that
notebooks can be compared with their stored outputs.
"""

from __future__ import annotations

from typing import Any

from flowbook.explain.report import Report
from flowbook.graph.graph import Graph
from flowbook.graph.operation import Operation
from flowbook.graph.ops.variables import Variable
from flowbook.graph.stale_operations import StaleOperations
from flowbook.graph.tensor import Tensor
from flowbook.widgets import tables
from flowbook.widgets.graph_svg import graph_svg


def install(shell: Any) -> None:
    """Have an IPython shell show Flowbook's types as tables and pictures.

    Args:
        shell: the `InteractiveShell`. Installing twice changes nothing.
    """
    formatters = shell.display_formatter.formatters
    html = formatters["text/html"]
    html.for_type(Operation, tables.operation_html)
    html.for_type(Tensor, tables.tensor_html)
    html.for_type(Variable, tables.variable_html)
    html.for_type(StaleOperations, tables.stale_html)
    html.for_type(Report, tables.report_html)
    html.for_type_by_name("flowbook.exec.session", "Session", tables.session_html)
    formatters["image/svg+xml"].for_type(Graph, graph_svg)
