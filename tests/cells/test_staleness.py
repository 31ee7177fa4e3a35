"""What was built from something since redefined: the list, the warning, the errors."""

import warnings
from typing import Any

import pytest

import flowbook as fb
from flowbook.graph.staleness import check_stale, old_feed_error, stale_message


@pytest.fixture
def chain(notebook: Any) -> Any:
    """Cell a [1] has x, b [2] y from it, c [3] z from that; then a again, changed [4]."""
    notebook.run("a", "x = fb.placeholder(fb.float32, [2], name='x')")
    notebook.run("b", "y = fb.identity(x, name='y')")
    notebook.run("c", "z = fb.identity(y, name='z')")
    notebook.old_x = notebook["x"]
    notebook.run("a", "x = fb.placeholder(fb.float32, [None], name='x')")
    return notebook


def closure(*tensors: Any, fed: tuple[Any, ...] = ()) -> set[Any]:
    found: set[Any] = set()
    stack = [t.op for t in tensors if t not in fed]
    while stack:
        operation = stack.pop()
        if operation not in found:
            found.add(operation)
            stack += [t.op for t in operation.inputs if t not in fed]
            stack += operation.control_inputs
    return found


def test_listing(chain: Any) -> None:
    assert [str(item) for item in chain.graph.stale()] == [
        "'y' (cell [2], line 1): it was built from the 'x' of before cell [4] redefined it; "
        "re-run cell [2]",
        "'z' (cell [3], line 1): it was built from the 'x' of before cell [4] redefined it; "
        "re-run cell [2], then cell [3]",
    ]


def test_doing_as_told_helps(chain: Any) -> None:
    chain.run("b", "y = fb.identity(x, name='y')")
    [item] = chain.graph.stale()
    assert (item.operation.name, item.cells) == ("z", ("cell [3]",))
    chain.run("c", "z = fb.identity(y, name='z')")
    assert chain.graph.stale() == []
    assert stale_message(closure(chain["z"])) is None


def test_dropped_definition(chain: Any) -> None:
    chain.run("b", "pass")
    [item] = chain.graph.stale()
    assert item.reason == "it was built from a 'y' that cell [5] no longer builds"


def test_variable_is_named_rather_than_its_read(notebook: Any) -> None:
    notebook.run("a", "W = fb.Variable(1.0, name='W')")
    notebook.run("b", "y = fb.identity(W, name='y')")
    notebook.run("a", "W = fb.Variable(2.0, name='W')")
    [item] = notebook.graph.stale()
    assert item.reason == "it was built from the 'W' of before cell [3] redefined it"


def test_label_is_that_of_the_cell_as_it_stands(chain: Any) -> None:
    chain.run("b", "1 / 0", fails=True)
    assert next(iter(chain.graph.stale())).cells == ("cell [5]",)


def test_one_warning_per_run(chain: Any) -> None:
    with pytest.warns(fb.errors.StaleDefinitionWarning) as caught:
        check_stale(closure(chain["z"]))
    assert [str(w.message) for w in caught] == [
        "this run uses 'y', 'z', built from the 'x' of before cell [4] redefined it: "
        "re-run cell [2], then cell [3]"
    ]
    assert caught[0].filename == __file__


def test_warning_names_the_line_of_the_cell(chain: Any) -> None:
    chain.shell.user_ns.update(check=check_stale, closure=closure)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chain.run("d", "pass\n\ncheck(closure(z))")
    assert (caught[0].filename, caught[0].lineno) == ("cell [5]", 3)


def test_options(chain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fb.options, "stale", "error")
    with pytest.raises(fb.errors.StaleDefinitionError, match=r"re-run cell \[2\]"):
        check_stale(closure(chain["y"]))
    monkeypatch.setattr(fb.options, "stale", "ignore")
    check_stale(closure(chain["y"]))


def test_what_is_fed_is_not_stale(chain: Any) -> None:
    fed = (chain["y"],)
    check_stale(closure(chain["z"], fed=fed), fed)


def test_fetching_an_old_definition(chain: Any) -> None:
    message = stale_message(closure(chain.old_x))
    assert message is not None
    assert message.startswith("this run uses the 'x' of before cell [4] redefined it")


def test_feeding_the_new_where_the_old_is_used(chain: Any) -> None:
    assert str(old_feed_error([chain["z"]], [], [chain["x"]])) == (
        "x:0 is fed, but this run goes back to the 'x' of before cell [4] redefined it, in 'y', 'z'"
        "\n  hint: re-run cell [2], then cell [3]"
    )


def test_feeding_the_old_where_the_new_is_used(chain: Any) -> None:
    chain.run("b", "y = fb.identity(x, name='y')")
    assert str(old_feed_error([chain["y"]], [], [chain.old_x])) == (
        "x@1:0 is fed, the 'x' of before cell [4] redefined it, but this run takes the new one "
        "in 'y'\n  hint: feed 'x:0'"
    )


def test_feeding_a_redefined_variable(notebook: Any) -> None:
    notebook.run("a", "W = fb.Variable(1.0, name='W')")
    notebook.run("b", "y = fb.identity(W, name='y')")
    notebook.run("a", "W = fb.Variable(2.0, name='W')")
    for fed in (notebook["W"].handle, notebook["W"].value):
        error = old_feed_error([], [notebook["y"].op], [fed])
        assert error is not None
        assert error.hint == "re-run cell [2]"


def test_feeds_that_reach_are_no_error(chain: Any) -> None:
    z, old, new = chain["z"], chain.old_x, chain["x"]
    assert old_feed_error([z], [], [old]) is None
    assert old_feed_error([new], [], [new]) is None
    assert old_feed_error([z], [], [chain["y"], new]) is None
    chain.run("b", "w = fb.identity(x)")
    assert old_feed_error([chain["w"]], [], [new]) is None


def test_old_generation_of_a_variable_has_its_initializer(notebook: Any) -> None:
    notebook.run("a", "W = fb.Variable(1.0, name='W')\ny = fb.identity(W)")
    old, y = notebook["W"], notebook["y"]
    notebook.run("a", "W = fb.Variable(2.0, name='W')")
    handle = y.op.inputs[0].op.inputs[0].op
    assert fb.Variable.of(handle) is old
    assert notebook.graph.variables() == [notebook["W"]]


def test_stored_graph_is_stale_too(chain: Any) -> None:
    stored = fb.Graph.from_bytes(chain.graph.to_bytes())
    assert [str(item) for item in stored.stale()] == [
        "'y' (cell [2], line 1): it was built from the 'x' of before a cell redefined it; "
        "re-run cell [2], line 1",
        "'z' (cell [3], line 1): it was built from the 'x' of before a cell redefined it; "
        "re-run cell [2], line 1, then cell [3], line 1",
    ]


def test_graphs_without_retirements_cost_nothing(notebook: Any) -> None:
    notebook.run("a", "x = fb.constant(1.0)")
    check_stale(closure(notebook["x"]))
    assert notebook.graph.stale() == []
    assert old_feed_error([notebook["x"]], [], [notebook["x"]]) is None
