"""Which variables keep their values when their cell runs again, and what the output says."""

import weakref
from typing import Any

import pytest

KEPT = "flowbook: kept the values of {} (sess.run(variable.initializer) starts one afresh)"


def test_equal_variable_is_kept(notebook: Any, holder_of: Any) -> None:
    notebook.run("a", "W = fb.Variable([1.0, 2.0], name='W')\nb = fb.Variable(0.0, name='b')")
    assert notebook.notices == []
    op = notebook["W"].op
    notebook.run("a", "W = fb.Variable([1.0, 2.0], name='W')\nb = fb.Variable(0.0, name='b')")
    assert notebook.notices == []  # Nothing has run: there is no value to keep.
    holder = holder_of(notebook.graph)
    notebook.run("a", "W = fb.Variable([1.0, 2.0], name='W')\nb = fb.Variable(0.0, name='b')")
    assert notebook["W"].op is op
    assert notebook.notices == [KEPT.format("W, b")]
    holder.extend()
    assert holder.has_value(op)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("fb.Variable([1.0, 3.0], name='W')", "another initial value"),
        ("fb.Variable([1.0, 2.0, 3.0], name='W')", "shape [3], was [2]"),
        ("fb.Variable([1, 2], name='W')", "dtype int32, was float32"),
        ("fb.Variable([1.0, 2.0], name='W', trainable=False)", "trainable False, was True"),
    ],
)
def test_changed_variable_starts_afresh(
    notebook: Any, holder_of: Any, change: str, said: str
) -> None:
    notebook.run("a", "W = fb.Variable([1.0, 2.0], name='W')")
    old, holder = notebook["W"].op, holder_of(notebook.graph)
    notebook.run("a", f"W = {change}")
    assert notebook["W"].op is not old
    assert (notebook["W"].name, old.name) == ("W:0", "W@1")
    assert notebook.notices == [f"flowbook: redefined, with values that start afresh: W ({said})"]
    assert holder.has_value(old)  # For what still refers to it.
    assert notebook.graph.variables() == [notebook["W"]]


def test_a_renamed_variable_is_told_of(notebook: Any, holder_of: Any) -> None:
    notebook.run("a", "W = fb.Variable([1.0], name='W')")
    keep = holder_of(notebook.graph)
    notebook.run("a", "W = fb.Variable([1.0], name='weights')")
    assert notebook.notices == [
        "flowbook: no longer defined: W (a value stays only while something refers to it)"
    ]
    del keep


def test_long_lists_are_cut(notebook: Any, holder_of: Any) -> None:
    source = "vs = [fb.Variable(0.0, name=f'v{i}') for i in range(40)]"
    notebook.run("a", source)
    holder = holder_of(notebook.graph)
    notebook.run("a", source)
    assert notebook.notices == [KEPT.format("v0, v1, v2, v3, v4, v5 and 34 more")]
    assert all(map(holder.has_value, (v.op for v in notebook["vs"])))


def test_below_an_error_only_losses_are_said(notebook: Any, holder_of: Any) -> None:
    two = "W = fb.Variable(1.0, name='W')\nb = fb.Variable(2.0, name='b')"
    notebook.run("a", two)
    holder = holder_of(notebook.graph)
    notebook.run("a", f"{two}\n1 / 0", fails=True)
    assert notebook.notices == []
    assert holder.has_value(notebook["W"].op)
    notebook.run("a", f"{two.replace('1.0', '3.0')}\n1 / 0", fails=True)
    assert notebook.notices == [
        "flowbook: redefined, with values that start afresh: W (another initial value)"
    ]
    notebook.run("a", two.replace("1.0", "3.0"))
    assert notebook.notices == [KEPT.format("b")]


def unnamed(*values: float) -> str:
    return "vs = [" + ", ".join(f"fb.Variable({v})" for v in values) + "]"


def test_unnamed_variables_of_the_same_sequence_are_kept(notebook: Any, holder_of: Any) -> None:
    notebook.run("a", unnamed(1.0, 2.0))
    holder = holder_of(notebook.graph)
    notebook.run("a", unnamed(1.0, 2.0))
    holder.extend()
    assert notebook.notices == [KEPT.format("Variable, Variable_1")]
    assert all(holder.has_value(v.op) for v in notebook["vs"])


@pytest.mark.parametrize(
    "after", [(1.0,), (1.0, 1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (2.0, 1.0, 1.0)]
)
def test_unnamed_variables_of_another_sequence_all_start_afresh(
    notebook: Any, holder_of: Any, after: tuple[float, ...]
) -> None:
    notebook.run("a", unnamed(1.0, 1.0))
    holder = holder_of(notebook.graph)
    notebook.run("b", "other = fb.Variable(5.0)")
    version = notebook.graph.version
    notebook.run("a", unnamed(*after))
    holder.extend()
    assert notebook.graph.version > version
    assert not any(holder.has_value(v.op) for v in notebook["vs"])
    assert len(notebook.notices) >= 1
    assert not any("kept" in line for line in notebook.notices)
    assert any("start afresh" in line for line in notebook.notices)


def test_unnamed_variables_of_other_cells_are_theirs(notebook: Any, holder_of: Any) -> None:
    notebook.run("a", unnamed(1.0))
    notebook.run("b", unnamed(1.0))
    theirs = notebook["vs"][0].op
    holder = holder_of(notebook.graph)
    notebook.run("a", unnamed(1.0, 1.0))
    holder.extend()
    assert holder.has_value(theirs)
    assert [v.op.name for v in notebook["vs"]] == ["Variable", "Variable_2"]


def test_unnamed_variables_after_a_failure(notebook: Any, holder_of: Any) -> None:
    notebook.run("a", unnamed(1.0, 2.0))
    holder = holder_of(notebook.graph)
    notebook.run("a", unnamed(1.0) + "\n1 / 0", fails=True)
    notebook.run("a", unnamed(1.0, 2.0))
    holder.extend()
    assert all(holder.has_value(v.op) for v in notebook["vs"])
    notebook.run("a", unnamed(3.0) + "\n1 / 0", fails=True)
    notebook.run("a", unnamed(1.0, 2.0))
    holder.extend()
    assert not any(holder.has_value(v.op) for v in notebook["vs"])


class Session:
    """What has a life of its own."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


OWN = "s = Session(); fb.constant(1.0).op.site.author.own(s, 'the session closes')"


def test_what_a_cell_owns_is_closed_when_it_runs_again(notebook: Any) -> None:
    notebook.shell.user_ns["Session"] = Session
    notebook.run("a", OWN)
    first = notebook["s"]
    notebook.run("b", "pass")
    notebook.run("a", "s = (", fails=True)
    assert not first.closed
    notebook.run("a", OWN)
    assert first.closed
    assert notebook.notices == ["flowbook: the session closes"]
    notebook["s"].close()
    notebook.run("a", "1 / 0", fails=True)
    assert notebook.notices == []


def test_what_cannot_be_closed_is_told(notebook: Any) -> None:
    class Stuck(Session):
        def close(self) -> None:
            raise OSError("no")

        def __repr__(self) -> str:
            return "<Stuck>"

    notebook.shell.user_ns["Session"] = Stuck
    notebook.run("a", OWN)
    notebook.run("a", "x = fb.constant(2.0)")
    assert notebook.notices == ["flowbook: closing <Stuck> failed: OSError: no"]
    assert notebook["x"].op.site.author.label == "cell [2]"


def test_what_is_owned_is_held_weakly(notebook: Any) -> None:
    notebook.shell.user_ns["Session"] = Session
    notebook.run("a", OWN)
    ref = weakref.ref(notebook["s"])
    del notebook.shell.user_ns["s"]
    assert ref() is None


def test_an_axis_redefined_with_the_same_meaning_keeps_a_layers_variables(notebook: Any) -> None:
    build = "y = fb.layers.batch_normalization(fb.ones([2, 3]), axis=axis)"
    notebook.run("a", "axis = fb.constant(1, name='axis')")
    notebook.run("b", build)
    before = [v.op for v in notebook.graph.variables()]
    assert before
    notebook.run("a", "axis = fb.constant(-1, name='axis')")
    assert notebook.graph.stale()
    notebook.run("b", build)
    assert [v.op for v in notebook.graph.variables()] == before
    assert notebook.graph.stale() == []


def test_a_reset_at_the_top_of_a_cell_does_not_say_that_its_names_are_gone(notebook: Any) -> None:
    model = "fb.reset_default_graph()\nW = fb.Variable(2.0, name='W')"
    notebook.run("a", model)
    notebook.run("s", "sess = fb.Session()")
    notebook.run("r", "sess.run(W)")
    notebook.run("a", model)
    assert notebook.notices == [
        "flowbook: defined anew, in another graph than before: W "
        "(a session runs the graph that it was made for)"
    ]
    notebook.run("s", "sess = fb.Session()")
    notebook.run("r", "sess.run(W)")
    # What is not made again is gone all the same.
    notebook.run("a", "fb.reset_default_graph()")
    [notice] = notebook.notices
    assert notice.startswith("flowbook: no longer defined: W ")


@pytest.mark.parametrize(
    ("name", "between"), [(None, ["dense_1"]), ("last", ["last"])], ids=["unnamed", "named"]
)
def test_a_layer_put_in_between_takes_the_values_of_the_next_unless_that_has_a_name(
    notebook: Any, name: str | None, between: list[str]
) -> None:
    unnamed = "h = fb.layers.dense(h, 3)"
    last = f"h = fb.layers.dense(h, 3, name={name!r})"
    begin = "h = fb.zeros([1, 3])"
    notebook.run("a", "\n".join([begin, unnamed, last]))
    learnt = "sess = fb.Session()\nsess.run(fb.assign(fb.get_default_graph().variables()[-2], {}))"
    notebook.run("b", learnt.format("7 * fb.ones([3, 3])"))
    notebook.run("a", "\n".join([begin, unnamed, unnamed, last]))
    learnt_now = [
        variable.op.name.removesuffix("/kernel")
        for variable in notebook.graph.variables()
        if (notebook["sess"].run(variable) == 7).all()
    ]
    assert learnt_now == between
