"""Answers pages that ask for the value of a tensor: one message in, one out, nothing printed.

Pages open a comm for that, which JupyterLab runs on a subshell, a thread of the kernel's own: so
they are answered while a cell runs. A message from a page is outside input, and is checked; all
that it can do is to look at a tensor of a graph that is shown (`Session.peek`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import comm

from flowbook.exec.session.peek import used
from flowbook.exec.session.session import Session
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from flowbook.widgets.tensor_look import look

TARGET = "flowbook.fetch"

_LONGEST_NAME = 1000
_LONGEST_ERROR = 2000

Message = dict[str, Any]


class View(Protocol):
    """A picture in a page: what is asked for belongs to its graph."""

    @property
    def graph(self) -> Graph | None:
        """The graph."""

    @property
    def session(self) -> Session | None:
        """What fetches its tensors."""


FindView = Callable[[str], View | None]


def listen(find_view: FindView) -> None:
    """Have pages' comms answered from now on.

    Args:
        find_view: gives the view of an id.
    """

    def opened(channel: Any, _: Any) -> None:
        def asked(message: Any) -> None:
            reply, pictures = answer(message["content"]["data"], find_view)
            channel.send(reply, buffers=pictures)

        channel.on_msg(asked)
        channel.send({"kind": "listening"})

    comm.get_comm_manager().register_target(TARGET, opened)


def answer(request: Any, find_view: FindView) -> tuple[Message, list[bytes]]:
    """The reply to what a page asks, and the PNG files that go with it.

    Args:
        request: {"kind": "fetch", "id": a number, "view": an id, "tensor": a name}, or
            {"kind": "ping", "id": a number} to learn whether anyone listens.
        find_view: gives the view of an id.
    """
    number = request.get("id") if isinstance(request, dict) else None
    if type(number) is not int:
        return {"kind": "error", "id": None, "text": "a request has an id, which is a number"}, []
    if request.get("kind") == "ping":
        return {"kind": "listening", "id": number}, []
    try:
        shown, pictures = _fetched(request, find_view)
    except (Exception, KeyboardInterrupt) as error:
        # Whatever it is, it is for the page: in the notebook it would appear in some cell.
        name = type(error).__name__
        return {"kind": "error", "id": number, "text": _cut(f"{name}: {error}")}, []
    return {"kind": "value", "id": number, **shown}, pictures


def _fetched(request: Message, find_view: FindView) -> tuple[Message, list[bytes]]:
    kind, view_id, name = (request.get(key) for key in ("kind", "view", "tensor"))
    if kind != "fetch" or not isinstance(view_id, str) or not isinstance(name, str):
        raise InvalidArgumentError("a request says what is fetched and for which view")
    if len(name) > _LONGEST_NAME:
        raise InvalidArgumentError(f"names of {len(name):,} characters are not asked for here")
    view = find_view(view_id)
    graph = view.graph if view is not None else None
    if view is None or graph is None:
        raise NotFoundError("the graph of this picture is gone", hint="show it again")
    tensor = graph.get_tensor_by_name(name)
    session = view.session
    if session is None:
        raise FailedPreconditionError(
            "no open session runs this graph", hint="sess = fb.Session() in a cell makes one"
        )
    shown, pictures = look(session.peek(tensor))
    shown["session"] = session.site.place
    shown["fed"] = [each.name for each in used(tensor, session.retained_feeds)]
    return shown, pictures


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}…"
