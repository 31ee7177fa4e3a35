"""Names that are spelt differently in Flowbook: each error names something that there is."""

import re
from typing import Any

import pytest

import flowbook as fb
from flowbook import _renamed

TABLES = {"": _renamed._INSTEAD, **_renamed._INSTEAD_IN}
HINTS = [(space, name, hint) for space, table in TABLES.items() for name, hint in table.items()]


def reached(path: str) -> Any:
    found: Any = fb
    for part in path.split(".")[1:]:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize(("space", "name", "hint"), HINTS, ids=lambda v: v)
def test_a_hint_is_needed_and_names_what_exists(space: str, name: str, hint: str) -> None:
    assert name not in reached(f"fb.{space}" if space else "fb").__all__
    for path in re.findall(r"\bfb(?:\.\w+)+", hint):
        reached(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("fb.mul", "flowbook has no mul: use fb.multiply"),
        ("fb.nn.dynamic_rnn", "flowbook.nn has no dynamic_rnn: use fb.layers.lstm"),
        ("fb.nn.sigmoid", "flowbook.nn has no sigmoid: use fb.sigmoid"),
        ("fb.conv2d", "use fb.layers.conv2d or fb.nn.conv2d"),
        ("fb.string_split", "use fb.strings.split"),
        ("fb.sparse_tensor_to_dense", "use fb.sparse.to_dense"),
        ("fb.zeros_initializer", "use fb.initializers.zeros"),
        ("fb.train.AdamOptimiser", "did you mean AdamOptimizer"),
        ("fb.nn.sofmax", "did you mean softmax"),
    ],
)
def test_a_name_from_elsewhere_says_where_it_is(path: str, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        reached(path)


def test_private_names_are_plainly_missing() -> None:
    assert not hasattr(fb.nn, "__path__")
    assert not hasattr(fb, "_add")


@pytest.mark.parametrize(
    ("of", "name", "message"),
    [
        ("tensor", "T", r"fb.transpose\(tensor\)"),
        ("tensor", "astype", "fb.cast"),
        ("variable", "assign", r"Variable has no assign: use fb.assign\(variable, value\)"),
        ("variable", "get_shape", "variable.shape"),
        ("variable", "nonsense", "Variable has no nonsense$"),
        ("graph", "get_operations", "graph.operations"),
        ("graph", "nonsense", "Graph has no nonsense$"),
        ("session", "partial_run_setup", "sess.partial_run"),
        ("session", "as_default", "sess.run"),
    ],
)
def test_a_method_of_tensorflow_says_what_to_write(of: str, name: str, message: str) -> None:
    made: dict[str, Any] = {
        "tensor": fb.constant(1.0),
        "variable": fb.Variable(1.0),
        "graph": fb.get_default_graph(),
        "session": fb.Session(),
    }
    with pytest.raises(AttributeError, match=message):
        getattr(made[of], name)
