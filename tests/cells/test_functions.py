"""Functions that a cell defines again: the same one stays, calls of another one are stale."""

from typing import Any

import pytest

from flowbook.widgets.graphs.flow_blocks import pictured
from flowbook.widgets.graphs.payload import with_retired

FUNCTION = """
W = fb.Variable(3.0, name='W')

@fb.function(inline={inline})
def layer(x):
    b = fb.Variable(1.0, name='b')
    _, total = fb.while_loop(lambda i, t: i < 2, lambda i, t: (i + 1, t + x), (0, x))
    return W * total + b
"""
CALLS = """
x = fb.placeholder(fb.float32, [], name='x')
y = layer(layer(x))
[dy] = fb.gradients(y, [x])
"""
INLINE = pytest.mark.parametrize("inline", [True, False], ids=["inline", "kept"])


@INLINE
def test_the_same_function_stays(notebook: Any, inline: bool) -> None:
    source = FUNCTION.format(inline=inline)
    notebook.run("a", source)
    notebook.run("b", CALLS)
    notebook.run("c", "sess = fb.Session(); value = sess.run([y, dy], {x: 2.0})")
    operations, retirements = notebook.graph.operations, notebook.graph.retirements
    assert notebook["value"] == [172, 81]
    for cell, text in 2 * [("a", source), ("b", CALLS)]:
        notebook.run(cell, text)
        assert notebook.graph.operations == operations
        assert notebook.graph.retirements == retirements
        assert notebook.graph.stale() == []
    notebook.run("d", "value = sess.run([y, dy], {x: 2.0})")
    assert notebook["value"] == [172, 81]


@INLINE
def test_calls_of_what_was_redefined_are_stale(notebook: Any, inline: bool) -> None:
    notebook.run("a", FUNCTION.format(inline=inline))
    notebook.run("b", CALLS)
    notebook.run("s", "sess = fb.Session()")
    notebook.run("a", FUNCTION.format(inline=inline).replace("W * total", "W - total"))
    assert notebook.graph.stale().cells == ("cell [2]",)
    with pytest.warns(UserWarning, match="'functions/layer'"):
        notebook.run("c", "old = sess.run([y, dy], {x: 2.0})")
    notebook.run("b", CALLS)
    assert notebook.graph.stale() == []
    notebook.run("c", "now = sess.run([y, dy], {x: 2.0})")
    assert notebook["old"] == [172, 81]
    assert notebook["now"] == [10, 9]


def test_a_stale_call_does_not_lead_to_a_body_that_it_does_not_call(notebook: Any) -> None:
    notebook.run("a", FUNCTION.format(inline=False))
    notebook.run("b", "x = fb.placeholder(fb.float32, [], name='x')\ny = layer(x)")
    notebook.run("a", FUNCTION.format(inline=False).replace("W * total", "W - total"))
    notebook.run("c", "z = layer(x)")
    bodies = pictured(with_retired(notebook.graph.operations)).bodies
    assert {op.name: path for op, path in bodies.items()} == {"layer_1": "functions/layer"}


@INLINE
def test_a_function_belongs_to_the_cell_that_defines_it(notebook: Any, inline: bool) -> None:
    notebook.run("a", FUNCTION.format(inline=inline))
    notebook.run("b", CALLS)
    notebook.run("c", "z = layer(x)")
    [definition] = notebook["layer"].definitions()
    assert definition.site.author.cell.label == "cell [1]"
    notebook.run("b", "x = fb.placeholder(fb.float32, [], name='x')")  # It calls it no longer.
    assert notebook.graph.stale() == []
    assert not definition.retired
    notebook.run("a", "layer = None")
    assert notebook.graph.stale().cells == ("cell [3]",)


def test_errors_name_the_line_of_the_body_and_the_call(notebook: Any) -> None:
    notebook.run("a", "@fb.function\ndef f(x):\n    return fb.check_numerics(x, 'here')")
    notebook.run("b", "x = fb.placeholder(fb.float32, [])\n\ny = f(x)")
    notebook.run("s", "sess = fb.Session()")
    notebook.run("c", "y_kept = fb.function(f.__wrapped__, inline=False)(x)")
    for name, call in (("y", "cell [2], line 3"), ("y_kept", "cell [4], line 1")):
        notebook.run(
            "d",
            f"try:\n    sess.run({name}, {{x: float('nan')}})\n"
            "except fb.errors.InvalidArgumentError as error:\n    message = str(error)",
        )
        assert f"cell [1], line 3, called at {call}" in notebook["message"]


@pytest.mark.parametrize("made", ["fb.Variable(2.0, name='v')", "fb.FIFOQueue(2, fb.float32)"])
@pytest.mark.parametrize("inline", [True, False])
def test_what_a_cell_makes_again_is_the_same_argument(
    notebook: Any, made: str, inline: bool
) -> None:
    use = "v.size()" if "Queue" in made else "v * 3.0"
    source = f"f = fb.function(lambda v: {use}, inline={inline}, name='f')\ny = f(v)"
    notebook.run("a", f"v = {made}")
    notebook.run("b", source)
    v, y, before = notebook["v"], notebook["y"], notebook.graph.operations
    notebook.run("a", f"v = {made}")
    assert notebook["v"] is not v
    notebook.run("b", source)
    assert notebook["y"] is y
    assert notebook.graph.operations == before


@INLINE
def test_a_function_may_come_before_what_it_is_called_with(notebook: Any, inline: bool) -> None:
    source = f"""
@fb.function(inline={inline})
def f(x, w):
    return x * w
w = fb.Variable(2.0)
y = f(fb.constant(3.0), w)
"""
    notebook.run("a", source)
    y, before = notebook["y"], notebook.graph.operations
    notebook.run("a", source)
    assert notebook["y"] is y
    assert notebook.graph.operations == before
    notebook.run("a", source + "1 / 0", fails=True)
    assert notebook["y"] is y


def test_an_interrupt_while_a_body_is_built_again_leaves_the_cell_s_end_as_it_is(
    notebook: Any,
) -> None:
    source = """
@fb.function
def f(x):
    if {is_stopped}:
        raise KeyboardInterrupt
    return x * 2.0
"""
    notebook.run("a", source.format(is_stopped=False) + "gone = fb.constant(1.0, name='gone')")
    notebook.run("b", "y = f(fb.constant(3.0))")
    notebook.run("a", source.format(is_stopped=True))
    assert "gone" not in notebook.names
    notebook.run("c", "f(fb.constant(3.0))", fails=True)
    notebook.run("a", source.format(is_stopped=False))
    notebook.run("b", "y = f(fb.constant(3.0))\nvalue = fb.Session().run(y)")
    assert notebook["value"] == 6


def test_stale_calls_have_gradients(notebook: Any) -> None:
    notebook.run("a", FUNCTION.format(inline=False))
    notebook.run("b", "x = fb.placeholder(fb.float32, [], name='x')\ny = layer(x)")
    notebook.run("a", FUNCTION.format(inline=False).replace("W * total", "W - total"))
    notebook.run("c", "[dy] = fb.gradients(y, [x])\nsess = fb.Session()")
    with pytest.warns(UserWarning, match="'functions/layer'"):
        notebook.run("d", "value = sess.run(dy, {x: 2.0})")
    assert notebook["value"] == 9
