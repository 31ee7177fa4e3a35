"""What a cell's error shows: the frames of its author, and that others are hidden."""

import re
import sys
from typing import Any

import pytest
from IPython.utils.capture import capture_output

import flowbook as fb
from flowbook.cells.tracebacks import users_part
from flowbook.graph.model.errors import HIDDEN_FRAMES

SETUP = """
x = fb.placeholder(fb.float32, [2, 3], name="x")
W = fb.Variable(fb.zeros([2, 3]), name="W")
def failing(a):
    return a.nothing
[p] = fb.py_func(failing, [x], [fb.float32])
sess = fb.Session()
value = [[1, 2, 3], [4, 5, 6]]
"""


def shown(notebook: Any, source: str) -> str:
    """The text of the traceback of a cell that fails."""
    notebook.run("failing", source, fails=True)
    return str(notebook.output)


@pytest.fixture
def ready(notebook: Any) -> Any:
    notebook.run("setup", SETUP)
    return notebook


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("x @ W", "InvalidArgumentError"),
        ("fb.placeholder(name='x')", "InvalidTypeError"),
        ("fb.gradients(fb.argmax(x), x)", "InvalidTypeError"),
        ("fb.gradients(p, x)", "NotFoundError"),
        ("with fb.name_scope('a'):\n    fb.concat([x, W], axis=9)", "InvalidArgumentError"),
        ("sess.run(x)", "InvalidArgumentError"),
        ("sess.run(x, feed_dict={})", "TypeError"),
        ("sess.run(p, {x: value})", "UnknownError"),
        ("fb.bogus", "AttributeError"),
    ],
)
def test_only_the_cells_own_frames_are_shown(ready: Any, source: str, error: str) -> None:
    text = shown(ready, source)
    assert error in text
    assert f"----> {source.count(chr(10)) + 1} {source.splitlines()[-1]}" in text
    assert ".py:" not in text
    assert "skipping" not in text
    assert text.count(HIDDEN_FRAMES) == 1


def test_the_cause_keeps_the_users_function(ready: Any) -> None:
    text = shown(ready, "sess.run(p, {x: value})")
    assert "in failing(a)" in text
    assert "direct cause of the following" in text
    assert text.count("<ipython-input-") == 2


def test_users_frames_between_stay(ready: Any) -> None:
    ready.run(
        "define",
        "cube = fb.OpDef('Odd', 'x: T -> y: T', T=fb.FLOATS,\n    infer=lambda x: x.nowhere)",
    )
    text = shown(ready, "cube(x)")
    assert "infer=lambda x: x.nowhere" in text
    assert ".py:" not in text


def test_the_switch_shows_everything(ready: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown(ready, "x @ W")
    monkeypatch.setattr(fb.options, "full_tracebacks", True)
    with capture_output() as captured:
        ready.shell.run_line_magic("tb", "")
    assert "public.py" in captured.stdout
    text = shown(ready, "x @ W")
    assert "op_def.py" in text
    assert "_product_shape" in text
    assert "skipping" not in text
    assert HIDDEN_FRAMES not in text


def test_other_errors_are_left_alone(ready: Any) -> None:
    text = shown(ready, "import contextlib\nwith contextlib.suppress(KeyError):\n    1 / 0")
    assert HIDDEN_FRAMES not in text
    text = shown(ready, "import json\njson.loads('{')")
    assert "decoder.py" in text


def test_the_error_itself_stays_whole(ready: Any) -> None:
    shown(ready, "sess.run(x, feed_dict={})")
    error = sys.last_value
    files = []
    traceback = error.__traceback__
    while traceback is not None:
        files.append(traceback.tb_frame.f_code.co_filename)
        traceback = traceback.tb_next
    assert any(name.endswith("session.py") for name in files)
    assert not hasattr(error, "__notes__")


def test_nothing_but_flowbooks_frames_stays() -> None:
    try:
        fb.bogus  # noqa: B018
    except AttributeError as error:
        inner = error.__traceback__.tb_next  # type: ignore[union-attr]
        assert users_part(inner) is inner
        assert users_part(None) is None


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("import numpy as np\nnp.zeros(unknown.shape)", "a dimension of it, is None"),
        ("import numpy as np\nnp.zeros(of_any_rank.shape)", "this shape, or"),
        ("unknown.shape[0] * 2", "fb.shape(x) is the shape as a tensor"),
        ("int(unknown.shape[0])", "fb.shape(x) is the shape as a tensor"),
        ("import numpy as np\nshape = unknown.shape\nnp.prod(shape)", "fb.shape(x)"),
        ("unknown.shape[0].value", "write it without .value"),
        ("unknown.shape[1].value", "write it without .value"),
        ("unknown.shape.is_fully_defined()", "write it without ()"),
    ],
)
def test_what_python_refuses_in_its_own_words_has_a_hint(
    ready: Any, source: str, hint: str
) -> None:
    ready.run(
        "more",
        "unknown = fb.placeholder(fb.float32, [None, 3], name='unknown')\n"
        "of_any_rank = fb.placeholder(fb.float32)",
    )
    assert hint in shown(ready, source)
    # The same words about something else have none.
    assert "hint" not in shown(ready, "range(None)")
    assert "hint" not in shown(ready, "None.value")
    assert "hint" not in shown(ready, "True()")


@pytest.mark.parametrize(
    ("source", "meant"),
    [
        ("fb.Mutex().aquire()", "acquire"),
        ("fb.FIFOQueue(1, fb.int32).enque(1)", "enqueue"),
        ("fb.lookup.MutableHashTable(fb.int64, fb.int64, 0).isnert([1], [1])", "insert"),
        ("fb.Barrier([fb.int32], [[]]).take_man(1)", "take_many"),
        ("fb.ConditionalAccumulator(fb.float32).apply_gard(x)", "apply_grad"),
        ("fb.WholeFileReader().red(None)", "read"),
        ("fb.TensorArray(fb.float32, 1).wirte(0, x)", "write"),
        ("fb.train.AdamOptimizer().minimise(x)", "minimize"),
        ("fb.train.Saver().restor(sess, 'a')", "restore"),
        ("sess.sumarize()", "summarize"),
        ("x.shpae", "shape"),
        ("W.initialiser", "initializer"),
        ("fb.Session.rum", "run"),
        ("fb.errors.InvalidArgument", "InvalidArgumentError"),
        ("fb.onnx.laod", "load"),
        ("class Mine(fb.train.AdamOptimizer):\n    pass\nMine().minimise(x)", "minimize"),
    ],
)
def test_a_misspelt_name_has_a_hint(ready: Any, source: str, meant: str) -> None:
    assert re.search(rf"hint: did you mean .*\b{meant}\b", shown(ready, source))


@pytest.mark.parametrize(
    "source",
    [
        "sess.xyzzy",  # nothing like it
        "x.graph.get_operations",  # says what to write instead
        "sess._runn",
        "'a'.uper()",
        "fb.train.AdamOptimiser",
    ],
)
def test_other_names_have_no_such_hint(ready: Any, source: str) -> None:
    assert "hint:" not in shown(ready, source)


@pytest.mark.parametrize(
    ("source", "instead"),
    [("W.asign(2.0)", "fb.assign"), ("fb.Graph.as_graph_deff", "graph.to_bytes")],
)
def test_what_is_like_a_name_from_elsewhere_is_told_what_to_write(
    ready: Any, source: str, instead: str
) -> None:
    assert re.search(rf"hint: use .*{re.escape(instead)}", shown(ready, source))
