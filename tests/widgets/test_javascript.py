"""The front end's code in this process: alone with what it is given, bounded, from any thread."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import flowbook as fb
from flowbook.widgets import javascript
from flowbook.widgets.graphs.svg import graph_svg

CODE = """
var flowbook = {
    count: () => String((globalThis.calls = (globalThis.calls ?? 0) + 1)),
    names: () => Object.getOwnPropertyNames(globalThis).join(" "),
    forever: () => { for (;;) {} },
    fill: () => { const all = []; for (;;) all.push(new Uint8Array(100_000)); },
    deep: (n) => String(+n === 0 ? 0 : 1 + Number(flowbook.deep(n - 1))),
    fail: (why) => { throw new Error(why); },
};
"""


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the front end."""
    bundle = tmp_path / "picture.js"
    bundle.write_text(CODE)
    monkeypatch.setattr(javascript, "BUNDLE", bundle)


@pytest.mark.usefixtures("code")
def test_nothing_of_a_call_is_left_for_the_next() -> None:
    assert [javascript.call("count") for _ in range(2)] == ["1", "1"]


@pytest.mark.usefixtures("code")
def test_it_has_nothing_of_this_process() -> None:
    found = set(javascript.call("names").split())
    assert "JSON" in found
    assert not found & {"os", "std", "bjson", "process", "require", "fetch", "print", "console"}


@pytest.mark.usefixtures("code")
@pytest.mark.parametrize(
    ("function", "said"), [("forever", "interrupted"), ("fill", "out of memory"), ("fail", "why")]
)
def test_what_fails_or_never_ends_is_an_error(
    function: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(javascript, "_SECONDS", 0.2)
    monkeypatch.setattr(javascript, "_MEMORY", 10_000_000)
    with pytest.raises(fb.errors.InternalError, match=f"the front end's {function} failed.*{said}"):
        javascript.call(function, "why")


@pytest.mark.usefixtures("code")
def test_a_stack_is_deep_but_has_an_end() -> None:
    assert javascript.call("deep", "2000") == "2000"
    with pytest.raises(fb.errors.InternalError, match="stack"):
        javascript.call("deep", "10000000")


def test_threads_draw_at_once_what_one_draws() -> None:
    graphs = []
    for count in range(1, 5):
        with fb.Graph().as_default() as graph:
            x = fb.placeholder(fb.float32, [2], name="x")
            for _ in range(count):
                x = fb.tanh(x) + x
        graphs.append(graph)
    alone = [graph_svg(graph) for graph in graphs]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(graph_svg, graphs * 3)) == alone * 3


def test_without_an_engine_there_is_the_text_which_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "quickjs", None)
    fb.placeholder(fb.float32, [2], name="x")
    forms, _ = fb.GraphView()._repr_mimebundle_()
    assert set(forms) == {"text/plain"}
    assert forms["text/plain"].startswith("<GraphView of 1 operations>\n")
    assert "pip install quickjs-ng" in forms["text/plain"]


def test_without_a_front_end_there_is_the_text_which_says_how_to_build_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(javascript, "BUNDLE", tmp_path / "none.js")
    forms, _ = fb.GraphView()._repr_mimebundle_()
    assert set(forms) == {"text/plain"}
    assert "make front-end" in forms["text/plain"]
