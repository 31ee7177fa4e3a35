"""What a loop's variables are called."""

from typing import Any, NamedTuple

import pytest

import flowbook as fb


class State(NamedTuple):
    h: Any
    c: Any


def names(cond: Any, body: Any, variables: Any, **options: Any) -> list[str]:
    """What the variables of a loop are called that is built so."""
    with fb.Graph().as_default() as graph:
        fb.while_loop(cond, body, variables(), **options)
    entering = [op for op in graph.operations if op.type == "Enter"]
    return [op.attributes["variable"] for op in entering if not op.attributes["is_constant"]]


@pytest.mark.parametrize(
    ("cond", "body", "variables", "expected"),
    [
        (lambda i, t: i < 3, lambda i, t: (i + 1, t), lambda: (0, 1.0), ["i", "t"]),
        # What says nothing is called as the condition calls it, or by its place.
        (lambda i, t: i < 3, lambda i, _: (i + 1, 2.0), lambda: (0, 1.0), ["i", "t"]),
        (lambda i, _: i < 3, lambda i, _: (i + 1, 2.0), lambda: (0, 1.0), ["i", "[1]"]),
        (lambda *v: v[0] < 3, lambda *v: (v[0] + 1, v[1]), lambda: (0, 1.0), ["v[0]", "v[1]"]),
        (lambda i, *_: i < 3, lambda i, *v: (i + 1, *v), lambda: (0, 1, 2), ["i", "v[0]", "v[1]"]),
        (
            lambda s: s["i"] < 3,
            lambda s: {"i": s["i"] + 1, "t": s["t"]},
            lambda: {"i": 0, "t": State(1.0, 2.0)},
            ["i", "t.h", "t.c"],
        ),
        (lambda s: s.h < 3, lambda s: State(s.h + 1, s.c), lambda: State(0, 1.0), ["h", "c"]),
        (
            lambda i, state: i < 3,
            lambda i, state: (i + 1, state),
            lambda: (0, {"a": [1.0, 2.0]}),
            ["i", "state.a[0]", "state.a[1]"],
        ),
        (
            lambda i, out: i < 3,
            lambda i, out: (i + 1, out.write(i, 1.0)),
            lambda: (0, fb.TensorArray(fb.float32, 3)),
            ["i", "out"],
        ),
        (lambda i: i < 3, lambda i: i + 1, lambda: 0, ["variable"]),
    ],
)
def test_they_are_called_as_the_functions_do(
    cond: Any, body: Any, variables: Any, expected: list[str]
) -> None:
    assert names(cond, body, variables) == expected
    limited = names(cond, body, variables, maximum_iterations=9)
    assert limited == ["count", *expected]


def test_names_are_stored_with_the_graph() -> None:
    fb.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    again = fb.Graph.from_bytes(fb.get_default_graph().to_bytes())
    entering = [op for op in again.operations if op.type == "Enter"]
    assert [op.attributes["variable"] for op in entering] == ["i"]
