"""What was built from something since redefined: the list, the warning, the errors."""

import gc
import warnings
from typing import Any

import pytest

import flowbook as fb
from flowbook.graph.redefinition.stale_runs import check_feeds, check_stale, stale_message


def old_feed_error(*asked: Any) -> fb.errors.FailedPreconditionError | None:
    """The error for feeds that miss their aims; None if none does."""
    try:
        check_feeds(*asked)
    except fb.errors.FailedPreconditionError as error:
        return error
    return None


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
        "re-run cell [2], then cell [3]: this run uses 'y', 'z' built from the 'x' of before "
        "cell [4] redefined it"
    ]
    assert caught[0].filename == __file__


def test_warning_names_the_line_of_the_cell(chain: Any) -> None:
    chain.shell.user_ns.update(check=check_stale, closure=closure)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chain.run("d", "pass\n\ncheck(closure(z))")
    assert (caught[0].filename, caught[0].lineno) == ("cell [5]", 3)


def warned(notebook: Any, cell_id: str, source: str) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        notebook.run(cell_id, source)
    return [str(w.message).partition(":")[0] for w in caught]


def test_a_cell_hears_of_the_same_cells_once(chain: Any) -> None:
    chain.run("b2", "y2 = fb.identity(y, name='y2')")
    chain.shell.user_ns.update(check=check_stale, closure=closure)
    both = ["re-run cell [2], then cell [3]"]
    assert warned(chain, "d", "check(closure(z)); check(closure(z, y)); check(closure(z))") == both
    # What a part of these cells would mend is no news.
    assert warned(chain, "d", "check(closure(z)); check(closure(y))") == both
    assert warned(chain, "e", "check(closure(z))\ncheck(closure(y2))") == [
        *both,
        "re-run cell [2], then cell [5]",
    ]


def test_code_outside_cells_hears_once(chain: Any) -> None:
    with pytest.warns(fb.errors.StaleDefinitionWarning):
        assert check_stale(closure(chain["z"]))
    assert check_stale(closure(chain["z"], chain["y"]))  # A second warning would be an error.


def test_whether_a_run_is_stale_is_said_each_time(chain: Any) -> None:
    chain.shell.user_ns.update(check=check_stale, closure=closure)
    warned(chain, "d", "told = [check(closure(z)), check(closure(z)), check(closure(x))]")
    assert chain["told"] == [True, True, False]


def test_every_cell_that_runs_it_hears_of_it(notebook: Any) -> None:
    notebook.run("a", "x = fb.constant(1.0, name='x')")
    notebook.run("b", "y = fb.identity(x, name='y'); sess = fb.Session()")
    notebook.run("a", "x = fb.constant(2.0, name='x')")
    for cell in ("d", "e", "d"):
        text = f"import warnings\nwith warnings.catch_warnings(record=True) as {cell}:\n"
        notebook.run(cell, text + "    warnings.simplefilter('always'); sess.run(y); sess.run([y])")
        assert len(notebook[cell]) == 1
        assert "re-run cell [2]" in str(notebook[cell][0].message)
    notebook.run("f", "fb.options.stale = 'error'")
    try:
        notebook.run("g", "sess.run(y)", fails=True)
    finally:
        notebook.run("f", "fb.options.stale = 'warn'")
    notebook.run("b", "y = fb.identity(x, name='y'); sess = fb.Session()")
    notebook.run("h", "value = sess.run(y)")
    assert notebook["value"] == 2.0


def test_summary(chain: Any) -> None:
    assert repr(chain.graph.stale()) == (
        "2 stale operations: re-run, in this order\n"
        "  cell [2]: 'y', built from the 'x' of before cell [4] redefined it\n"
        "  cell [3]: 'z', built from the 'x' of before cell [4] redefined it"
    )
    assert [item.operation.name for item in chain.graph.stale()[:1]] == ["y"]


def test_summary_of_an_optimizer_is_short(notebook: Any) -> None:
    notebook.run("a", "W = fb.Variable([1.0, 2.0], name='W')\nh = fb.nn.relu(W)")
    notebook.run("b", "loss = fb.reduce_mean(h)")
    notebook.run("c", "train = fb.train.AdamOptimizer(0.1).minimize(loss)")
    notebook.run("a", "W = fb.Variable([1.0, 2.0, 3.0], name='W')\nh = fb.tanh(W)")
    stale = notebook.graph.stale()
    first, second, third = repr(stale).splitlines()
    assert first == f"{len(stale)} stale operations: re-run, in this order"
    assert second.startswith("  cell [2]: ")
    count = sum(item.operation.site.author.label == "cell [3]" for item in stale)
    assert third.startswith(f"  cell [3]: {count} operations, built from ")
    message = stale_message(closure(notebook["loss"]))
    assert message is not None
    assert max(len(line) for line in (second, third, message)) < 160


def test_nothing_stale(notebook: Any) -> None:
    assert repr(notebook.graph.stale()) == "nothing is stale"
    assert not notebook.graph.stale()


def test_lists_of_cells_and_causes_are_cut(notebook: Any) -> None:
    for i in range(9):
        notebook.run(f"a{i}", f"v{i} = fb.constant(1.0, name='v{i}')")
    for i in range(9):
        notebook.run(f"b{i}", f"w{i} = fb.identity(v{i}, name='w{i}')")
    for i in range(9):
        notebook.run(f"a{i}", f"v{i} = fb.constant(2.0, name='v{i}')")
    message = stale_message(closure(*(notebook[f"w{i}"] for i in range(9))))
    assert message == (
        "re-run cell [10], then cell [11], then cell [12], then cell [13], then cell [14], "
        "then cell [15] and 3 more: this run uses 9 operations built from "
        "the 'v0' of before cell [19] redefined it; the 'v1' of before cell [20] redefined it "
        "and 7 more"
    )


def test_options(chain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fb.options, "stale", "error")
    with pytest.raises(fb.errors.StaleDefinitionError, match=r"re-run cell \[2\]"):
        check_stale(closure(chain["y"]))
    monkeypatch.setattr(fb.options, "stale", "ignore")
    check_stale(closure(chain["y"]))


def test_what_is_fed_is_not_stale(chain: Any) -> None:
    fed = (chain["y"],)
    check_stale(closure(chain["z"], fed=fed), fed)


def test_what_is_fed_in_its_old_form_leaves_stale_what_takes_it(chain: Any) -> None:
    chain.run("session", "sess = fb.Session()")
    chain.shell.user_ns["old"] = {chain.old_x: [1.0, 2.0]}
    message = (
        r"re-run cell \[2\]: this run uses 'y' built from the 'x' of before cell \[4\] redefined it"
    )
    with pytest.warns(fb.errors.StaleDefinitionWarning, match=message) as told:
        chain.run("use", "found = [sess.run(y, old) for _ in range(3)]")
    assert len(told) == 1
    chain.run("b", "y = fb.identity(x, name='y')")
    chain.run("use", "found = sess.run(y, {x: [1.0]})")
    chain.run("end", "sess.close()")


def test_what_lacks_a_feed_of_its_old_form_is_built_anew(chain: Any) -> None:
    chain.run("session", "sess = fb.Session()")
    output = chain.run("use", "sess.run(y)", fails=True)
    assert "hint: re-run cell [2]: this run uses 'y' built from the 'x' of before" in output
    chain.run("end", "sess.close()")


def test_an_error_says_where_what_failed_was_redefined(notebook: Any) -> None:
    cell = "x = fb.check_numerics(fb.log(fb.constant({number})), 'wrong', name='x')"
    notebook.run("x", cell.format(number=0.0))
    notebook.run("y", "y = fb.identity(x)")
    notebook.run("session", "sess = fb.Session()")
    notebook.run("x", cell.format(number=1.0))
    with pytest.warns(fb.errors.StaleDefinitionWarning):
        output = notebook.run("use", "sess.run(y)", fails=True)
    assert "'x@1'" in output
    assert "redefined at cell [4], line 1:  x = fb.check_numerics(fb.log(fb.constant(1.0" in output
    assert "hint: re-run cell [2]: this run uses 'Identity' built from the 'x' of before" in output
    notebook.run("end", "sess.close()")


def test_fetching_an_old_definition(chain: Any) -> None:
    message = stale_message(closure(chain.old_x))
    assert message is not None
    assert message == (
        "fetch what the re-run cell built: this run uses the 'x' of before cell [4] redefined it"
    )


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


def test_an_axis_from_a_constant(notebook: Any) -> None:
    notebook.run("a", "axis = fb.constant(0, name='axis')")
    notebook.run("b", "x = fb.ones([2, 3]); total = fb.reduce_sum(x, axis); other = fb.exp(x)")
    notebook.run("a", "axis = fb.constant(1, name='axis')")
    [item] = notebook.graph.stale()
    assert str(item) == (
        "'total (Sum)' (cell [2], line 1): it was built from the 'axis' of before cell [3] "
        "redefined it; re-run cell [2]"
    )
    assert "re-run cell [2]" in str(stale_message(closure(notebook["total"])))
    notebook.run("b", "x = fb.ones([2, 3]); total = fb.reduce_sum(x, axis); other = fb.exp(x)")
    assert notebook.graph.stale() == []
    assert notebook["total"].shape == [2]


def test_an_axis_of_the_same_value_from_another_constant(notebook: Any) -> None:
    notebook.run("a", "axis = fb.constant(0, name='axis')")
    notebook.run("b", "total = fb.reduce_sum(fb.ones([2, 3]), axis)")
    notebook.run("a", "axis = fb.constant([0], name='axis')")
    notebook.run("b", "total = fb.reduce_sum(fb.ones([2, 3]), axis)")
    assert notebook.graph.stale() == []


def test_copies_of_what_was_redefined_have_names_of_their_own(notebook: Any) -> None:
    notebook.run("a", "W = fb.Variable(1.0, name='W')")
    notebook.run("b", "y = W * 2.0")
    notebook.run("c", "V = fb.Variable(5.0, name='W')\nz = y + V")
    notebook.run("a", "W = fb.Variable([1.0], name='W')")
    assert {v.op.name for v in (notebook["W"], notebook["V"])} == {"W", "W_1"}
    with pytest.warns(fb.errors.StaleDefinitionWarning):
        notebook.run("d", "seen = fb.observe(fb.Session(), z)\ncost = fb.forecast(z)")
    assert notebook["seen"][notebook["z"]] == 7.0
    assert notebook["cost"].total.flops == 2


def test_an_axis_from_the_rank_of_something_stale(notebook: Any) -> None:
    notebook.run("a", "w = fb.zeros([2, 3], name='w')")
    notebook.run("b", "x = fb.exp(w, name='x')")
    notebook.run("c", "total = fb.reduce_sum(fb.ones([2, 3]), fb.rank(x) - 1, name='total')")
    notebook.run("a", "w = fb.zeros([2], name='w')")
    # The run executes nothing of what the axis was read from.
    assert str(stale_message(closure(notebook["total"]))) == (
        "re-run cell [2], then cell [3]: this run uses 'total' built from the 'w' of before "
        "cell [4] redefined it"
    )


def test_what_a_shape_told_before_it_was_redefined_is_stale(notebook: Any) -> None:
    notebook.run("a", "x = fb.placeholder(fb.float32, [2, 3], name='x')")
    notebook.run("b", "count = fb.size(x, name='count')")
    notebook.run("a", "x = fb.placeholder(fb.float32, [5, 3], name='x')")
    assert "re-run cell [2]" in str(stale_message(closure(notebook["count"])))
    notebook.run("b", "count = fb.size(x, name='count')")
    assert stale_message(closure(notebook["count"])) is None
    assert fb.constant_value(notebook["count"]) == 15


def test_an_axis_that_is_read_in_every_execution_leaks_nothing(notebook: Any) -> None:
    def run(turn: int) -> int:
        notebook.run("a", f"axis = fb.constant({turn % 2}, name='axis')")
        notebook.run("b", "total = fb.reduce_sum(fb.ones([2, 3]), axis)")
        if turn % 3:
            notebook.run("a", f"axis = fb.constant({turn % 5 % 2}, name='axis')")
        gc.collect()
        found = (o for o in gc.get_objects() if isinstance(o, fb.Operation))
        return sum(o.graph is notebook.graph for o in found)

    few = max(run(turn) for turn in range(6))
    assert max(run(turn) for turn in range(200)) == few


def test_an_axis_that_only_the_run_knows_makes_stale(notebook: Any) -> None:
    notebook.run("a", "n = fb.placeholder(fb.int32, [], name='n')\naxis = n + 1")
    notebook.run("b", "total = fb.reduce_sum(fb.ones([2, 3]), axis, name='total')")
    notebook.run("a", "n = fb.placeholder(fb.int32, [], name='n')\naxis = n - 1")
    assert {s.operation.name for s in notebook.graph.stale()} == {"total"}
    notebook.run("b", "total = fb.reduce_sum(fb.ones([2, 3]), axis, name='total')")
    notebook.run("c", "sess = fb.Session()\nvalue = sess.run(total, {n: 2})")
    assert notebook["value"].tolist() == [3, 3]
    assert not notebook.graph.stale()
