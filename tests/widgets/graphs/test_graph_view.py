"""What is shown where there is no notebook, and pages that need none."""

import gc
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.widgets import front_end
from flowbook.widgets.page import is_looked_at
from tests.notebook_shell import Shell


def build() -> tuple[fb.Tensor, fb.Tensor]:
    x = fb.placeholder(fb.float32, [2], name="x")
    fb.tanh(x, name="unneeded")
    return x, fb.identity(fb.identity(x, name="first"), name="second")


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Stand in for the front end, which these tests do without."""
    code = 'export const renderExported = async () => "</script>";'
    path = tmp_path / "flowbook.js"
    path.write_text(code)
    monkeypatch.setattr(front_end, "BUNDLE", path)
    return code


def test_forms_without_a_notebook() -> None:
    build()
    forms, _ = fb.GraphView()._repr_mimebundle_()
    assert set(forms) == {"text/plain", "image/svg+xml", "image/png"}
    assert forms["text/plain"] == "<GraphView of 4 operations>"


def test_it_takes_graphs_and_what_has_one() -> None:
    build()
    with fb.Session() as session:
        assert fb.GraphView(session).graph is fb.GraphView(session.graph).graph
    with pytest.raises(fb.errors.InvalidTypeError, match="neither a graph"):
        fb.GraphView(3)


def test_needed_operations() -> None:
    _, second = build()
    assert "3 of them needed" in repr(fb.GraphView(fetches=second))
    view = fb.GraphView(fetches=[second], feeds=["first:0"])
    assert view.needed is not None
    assert [op.name for op in view.needed.operations] == ["second"]
    assert [op.name for op in view.needed.fed] == ["first"]


def test_unknown_names_are_errors() -> None:
    build()
    with pytest.raises(fb.errors.NotFoundError, match="nothing"):
        fb.GraphView(fetches="nothing:0")


def test_exported_page_stands_alone(tmp_path: Path, bundle: str) -> None:
    build()
    path = tmp_path / "graph.html"
    fb.GraphView().export_html(path)
    page = path.read_text()
    assert "<svg" in page  # Never blank, even where scripts do not run.
    assert bundle.replace("</script", "<\\/script") in page
    assert page.count("</script>") == 2
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert re.search(r'renderExported\("[A-Za-z0-9+/=]+"', page)


def test_hostile_names_do_not_leave_the_page(tmp_path: Path, bundle: str) -> None:
    x = fb.constant(np.float32(1), name="x")
    x.op.name = "</script><script>alert(1)</script>"
    fb.GraphView().export_html(tmp_path / "graph.html")
    assert "<script>alert" not in (tmp_path / "graph.html").read_text()


def test_exporting_without_a_front_end_says_how_to_build_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_end, "BUNDLE", tmp_path / "none.js")
    with pytest.raises(fb.errors.FailedPreconditionError, match="make front-end"):
        fb.GraphView().export_html(tmp_path / "graph.html")


@pytest.mark.parametrize(
    ("request_", "is_live"),
    [
        ({"msg_type": "execute_request", "metadata": {"cellId": "a"}}, True),
        ({"msg_type": "execute_request", "metadata": {}}, False),
        ({"msg_type": "comm_msg", "metadata": {}}, True),
        ({}, False),
    ],
    ids=["page", "program", "callback", "no message"],
)
def test_a_view_is_live_only_where_somebody_looks(request_: Any, is_live: bool) -> None:
    shell = Shell()
    shell.request = request_
    assert is_looked_at(shell) is is_live
    assert not is_looked_at(None)
    assert not is_looked_at(object())


def test_live_form_in_a_kernel(bundle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import IPython

    monkeypatch.setattr(IPython, "get_ipython", Shell)
    from flowbook.widgets import live_view
    from flowbook.widgets.graphs import live

    monkeypatch.setattr(live_view, "_shared", [])
    x, _ = build()
    forms, _ = fb.GraphView()._repr_mimebundle_()
    # Not a widget's: front ends that do not find a widget show an error, and not the picture.
    assert set(forms) == {"text/plain", "image/svg+xml", "image/png", front_end.LIVE_VIEW}
    shown = forms[front_end.LIVE_VIEW]["model_id"]
    [view] = [each for each in live._views if each.model_id == shown]
    before = view.payload
    live.follow_all()
    assert view.payload is before
    fb.tanh(x, name="later")
    live.follow_all()
    assert view.payload != before
    # The code is sent once, whatever is shown.
    fb.GraphView()._repr_mimebundle_()
    assert len(live_view._shared) == 1
    # VS Code knows widgets alone.
    monkeypatch.setenv("VSCODE_PID", "1")
    forms, _ = fb.GraphView()._repr_mimebundle_()
    assert forms[front_end.WIDGET_VIEW] == forms[front_end.LIVE_VIEW]
    assert view.runtime == f"anywidget:{live_view._shared[0].model_id}"
    view.close()
    assert view.closed
    for other in list(live._views):
        other.close()


def test_a_picture_says_that_what_it_shows_has_ended(
    bundle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flowbook.widgets import live_view
    from flowbook.widgets.graphs.live import LiveGraph

    monkeypatch.setattr(live_view, "_shared", [])
    graph = fb.Graph()
    session = fb.Session(graph=graph)
    of_graph, of_session = LiveGraph(graph), LiveGraph(graph, None, session)

    def said() -> list[str]:
        for view in (of_graph, of_session):
            view.follow()
        return [of_graph.said, of_session.said]

    assert said() == ["", ""]
    # Another open session gives the values that are asked for, but is not the one shown.
    with fb.Session(graph=graph) as other:
        session.close()
        assert of_session.session is other
        assert said() == ["", "the session that this shows has ended"]
    del graph, session, other
    gc.collect()
    assert said() == ["the graph that this shows has ended"] * 2
    of_graph.close()
    of_session.close()


def test_loops_and_branches_are_shown() -> None:
    x = fb.placeholder(fb.float32, [], name="x")

    def body(i: Any, v: Any) -> Any:
        _, inner = fb.while_loop(lambda j, u: j < 2, lambda j, u: (j + 1, u * x), (0, v))
        return i + 1, fb.cond(inner > 1.0, lambda: inner, lambda: fb.exp(inner))

    v = fb.while_loop(lambda i, v: i < 3, body, (0, x), name="loop")[1]
    fb.gradients(v, [x])
    graph = fb.get_default_graph()
    forms, _ = fb.GraphView()._repr_mimebundle_()
    assert forms["text/plain"] == f"<GraphView of {len(graph.operations)} operations>"
    for name in ("loop", "gradients"):
        assert name in forms["image/svg+xml"]


def test_colours_of_a_trace_or_a_plan() -> None:
    x, y = build()
    with fb.Session() as sess:
        plan = sess.explain(y, {x: (2,)})
        with sess.trace() as trace:
            sess.run(y, {x: [1.0, 2.0]})
    fb.identity(y, name="later")  # Of which neither tells.
    by_trace, by_plan = (
        fb.GraphView(color=told)._repr_mimebundle_()[0]["image/svg+xml"] for told in (trace, plan)
    )
    assert ">time<" in by_trace
    assert ">cpu:0<" in by_plan
    by_memory = fb.GraphView(color=trace, color_by="memory")._repr_mimebundle_()[0]
    assert ">memory<" in by_memory["image/svg+xml"]
    with pytest.raises(ValueError, match="colours tell of device, time, memory"):
        fb.GraphView(color=plan, color_by="weight")
    with pytest.raises(ValueError, match="there is none"):
        fb.GraphView(color_by="time")
    with pytest.raises(fb.errors.InvalidTypeError, match="a trace or a plan, not of 3"):
        fb.GraphView(color=3)
