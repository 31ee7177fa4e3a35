"""The static HTML forms of what a person looks at: one small table each.

They take their colours from the page, so that they read on light and dark ones. All text from
graphs is escaped and bounded in length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from flowbook.exec.report import Report, Table
from flowbook.exec.session.session import Session
from flowbook.graph.model.counted import counted
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin.called import called, tensor_called
from flowbook.graph.model.origin.site import Site
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.redefinition.stale_operations import StaleOperations
from flowbook.widgets.shown_text import shown_text

_LONGEST = 200  # Characters of one text.
_MOST = 12  # Rows of one kind.

Row = tuple[str, str]  # A heading, and HTML.


def table_of(shown: Any) -> str | None:
    """The HTML form of something; None if it has none."""
    return next((form(shown) for kind, form in FORMS.items() if isinstance(shown, kind)), None)


def operation_html(operation: Operation) -> str:
    """The table of an operation: attributes, inputs, outputs, constraints, definition."""
    rows = [*_attributes(operation)]
    rows += _listed("input", [_tensor(tensor) for tensor in operation.inputs])
    rows += _listed("waits for", [_code(called(op)) for op in operation.control_inputs])
    rows += _listed("output", [_tensor(tensor) for tensor in operation.outputs])
    rows += _constraints(operation)
    rows += _definition(operation.site)
    return _table(f"Operation {_code(called(operation))} of type {_code(operation.type)}", rows)


def tensor_html(tensor: Tensor) -> str:
    """The table of a tensor: its type and shape, where it comes from and where it goes."""
    rows = [
        ("dtype", _code(tensor.dtype.name)),
        ("shape", _code(str(tensor.shape))),
        ("operation", f"{_code(called(tensor.op))} of type {_code(tensor.op.type)}"),
    ]
    rows += _listed("taken by", [_code(called(op)) for op in tensor.consumers()])
    rows += _constraints(tensor.op)
    rows += _definition(tensor.op.site)
    return _table(f"Tensor {_code(tensor_called(tensor))}", rows)


def variable_html(variable: Variable) -> str:
    """The table of a variable: its type and shape, what it starts with, where it was defined."""
    rows = [
        ("dtype", _code(variable.dtype.name)),
        ("shape", _code(str(variable.shape))),
        ("trainable", "yes" if variable.trainable else "no"),
        ("starts as", _tensor(variable.initial_value)),
    ]
    rows += _constraints(variable.op)
    rows += _definition(variable.op.site)
    return _table(f"Variable {_code(called(variable.op))}", rows)


def stale_html(stale: StaleOperations) -> str:
    """The table of stale operations: the cells to re-run, and for each why."""
    rows = [
        (each.cell, f"{_text(each.operations)}, built from {_text(each.cause)}")
        for each in stale.by_cell()
    ]
    more = [("", f"and {len(rows) - _MOST:,} more cells")] if len(rows) > _MOST else []
    return _table(_text(stale.summary()), rows[:_MOST] + more)


def session_html(session: Session) -> str:
    """The table of a session: whether it is open, and on which graph."""
    graph = session.graph
    rows = [
        ("state", "closed" if session.closed else "open"),
        (
            "graph",
            f"{counted(len(graph.operations), 'operation')}, "
            f"{counted(len(graph.variables()), 'variable')}, "
            f"made at {_text(graph.site.place)}",
        ),
    ]
    return _table("Session", rows)


def report_html(report: Report) -> str:
    """What a tool found out, as a table with a heading and notes."""
    return table_html(report.table)


def table_html(table: Table, title: str | None = None) -> str:
    """A table with a heading, its own or another, or none, and notes."""
    head = "".join(_cell("th", i in table.numeric, _text(h)) for i, h in enumerate(table.headings))
    body = "\n".join(
        "<tr>"
        + "".join(_cell("td", i in table.numeric, _indented(c)) for i, c in enumerate(row))
        + "</tr>"
        for row in table.rows
    )
    rows = f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    notes = "".join(f"<p>{_text(note)}</p>" for note in table.notes)
    shown = table.title if title is None else title
    heading = f"<p><strong>{_text(shown)}</strong></p>" if shown else ""
    return f"{heading}{rows if table.rows else ''}{notes}"


def _cell(tag: str, is_number: bool, html: str) -> str:
    scope = ' scope="col"' if tag == "th" else ""
    # A number stays with its unit; a long name gives way, between the scopes that it is in.
    html = html.replace(" ", "&nbsp;") if is_number else html.replace("/", "/<wbr>")
    return f'<{tag}{scope} style="text-align:{"right" if is_number else "left"}">{html}</{tag}>'


def _indented(text: str) -> str:
    """The text, with the spaces that say how deep it lies."""
    depth = len(text) - len(text.lstrip(" "))
    return "&nbsp;" * depth + _text(text[depth:])


def _attributes(operation: Operation) -> Iterable[Row]:
    for name, value in operation.attributes.items():
        if not (isinstance(value, str) and not value):
            yield name, _code(value_text(value))


def _constraints(operation: Operation) -> Iterable[Row]:
    if operation.device:
        yield "device", _code(operation.device)
    if operation.container:
        yield "container", _code(operation.container)
    yield from _listed("together with", [_code(called(op)) for op in operation.colocation])


def _definition(site: Site) -> Iterable[Row]:
    source = f"<br>{_code(site.source)}" if site.source else ""
    yield "defined at", _text(site.place) + source


def _listed(heading: str, items: list[str]) -> Iterable[Row]:
    for i, item in enumerate(items[:_MOST]):
        yield heading if i == 0 else "", item
    if len(items) > _MOST:
        yield "", f"and {len(items) - _MOST:,} more"


def _tensor(tensor: Tensor) -> str:
    return f"{_code(tensor_called(tensor))} {_text(tensor.dtype.name)} {_text(str(tensor.shape))}"


def value_text(value: Any) -> str:
    """What an attribute is, in short: large arrays by their dtype and shape."""
    if isinstance(value, np.ndarray):
        kind = f"{value.dtype.name if value.dtype.kind != 'O' else 'string'} {list(value.shape)}"
        return f"{kind} {_elements(value)}".rstrip()
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__name__))
    return str(getattr(value, "name", None) or value)


def _elements(array: np.ndarray[Any, Any]) -> str:
    if array.size > 8:
        return ""
    return str(array.tolist())


def _table(title: str, rows: Iterable[Row]) -> str:
    left = 'style="text-align:left;vertical-align:top"'
    body = "\n".join(
        f'<tr><th scope="row" {left}>{_text(heading)}</th><td {left}>{cell}</td></tr>'
        for heading, cell in rows
    )
    return (
        f'<table><thead><tr><th colspan="2" {left}>{title}</th></tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table>"
    )


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>"


def _text(text: str) -> str:
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}… ({len(text):,} characters)"
    return shown_text(text)


FORMS: dict[type, Callable[[Any], str]] = {
    Operation: operation_html,
    Report: report_html,
    Session: session_html,
    StaleOperations: stale_html,
    Tensor: tensor_html,
    Variable: variable_html,
}
