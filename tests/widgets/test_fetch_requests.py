"""What a page may ask for, and what it hears."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.widgets.fetch_requests import answer


@dataclass
class Shown:
    graph: fb.Graph | None
    session: fb.Session | None


def ask(view: Shown | None, tensor: Any, **more: Any) -> dict[str, Any]:
    request = {"kind": "fetch", "id": 7, "view": "v", "tensor": tensor, **more}
    reply, _ = answer(request, {"v": view}.get)
    assert reply["id"] == 7
    json.dumps(reply, allow_nan=False)
    return reply


def test_a_value_is_shown_with_where_it_comes_from() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")
    y = fb.multiply(x, 2.0, name="y")
    fb.placeholder(fb.float32, [], name="other")
    with fb.Session() as sess, sess.retain_feeds():
        sess.run(y, {x: [1.0, 2.0]})
        reply = ask(Shown(sess.graph, sess), "y:0")
        assert (reply["kind"], reply["text"], reply["fed"]) == ("value", "[2.0 4.0]", ["x:0"])
        assert "test_fetch_requests.py" in reply["session"]
        assert "other:0" in ask(Shown(sess.graph, sess), "other:0")["text"]


def test_pictures_go_beside_the_message() -> None:
    fb.zeros([8, 8], name="z")
    with fb.Session() as sess:
        view = Shown(sess.graph, sess)
        request = {"kind": "fetch", "id": 1, "view": "v", "tensor": "z:0"}
        _, [png] = answer(request, lambda _: view)
    assert png.startswith(b"\x89PNG")


def test_what_cannot_be_shown_is_said() -> None:
    w = fb.Variable(1.0, name="w")
    fb.assign(w, 2.0, name="write")
    bad = fb.placeholder(fb.float32, [None], name="bad")
    fb.reshape(bad, [3], name="three")
    with fb.Session() as sess, sess.retain_feeds():
        view = Shown(sess.graph, sess)
        sess.run(fb.identity(bad), {bad: [1.0]})
        assert "changes a variable" in ask(view, "write:0")["text"]
        told = ask(view, "three:0")
        assert told["kind"] == "error"
        assert "InvalidArgumentError" in told["text"]
        assert "'three'" in told["text"]
    assert "no open session" in ask(Shown(view.graph, None), "w:0")["text"]
    assert "is gone" in ask(Shown(None, None), "w:0")["text"]
    assert "is gone" in ask(None, "w:0")["text"]


def test_an_interrupt_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with fb.Session() as sess:
        fb.constant(1.0, name="a")
        monkeypatch.setattr(fb.Session, "peek", interrupted)
        assert "KeyboardInterrupt" in ask(Shown(sess.graph, sess), "a:0")["text"]


def test_a_ping_is_answered() -> None:
    assert answer({"kind": "ping", "id": 3}, {}.get) == ({"kind": "listening", "id": 3}, [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(["kind", "id", "view", "tensor"])
SENSE = st.sampled_from(["fetch", "ping", "v", "a:0", "a", "x" * 100_000, "a:99", "<b>:0"])


@given(JSON | st.dictionaries(KEYS, JSON | SENSE))
def test_whatever_a_page_sends_is_answered(request: Any) -> None:
    with fb.Graph().as_default() as graph, fb.Session(graph) as sess:
        fb.constant(1.0, name="a")
        reply, pictures = answer(request, lambda _: Shown(graph, sess))
        assert reply["kind"] in {"error", "listening", "value"}
        assert len(json.dumps(reply)) < 5_000
        assert pictures == []
        assert len(graph.operations) == 1
