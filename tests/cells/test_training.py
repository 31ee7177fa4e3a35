"""What optimizers keep when cells run again: slots, powers, averages, counters, marks."""

import gc
import weakref
from typing import Any

import pytest

VARIABLE = "W = fb.Variable([1.0, 2.0], name='W')\nloss = fb.reduce_sum(fb.square(W))"
TRAIN = "train = fb.train.AdamOptimizer(0.1).minimize(loss)"
KEPT = ["W/Adam/m", "W/Adam/v", "Adam/beta1_power", "Adam/beta2_power"]


def kept(notebook: Any) -> dict[str, Any]:
    names = {v.op.name: v.op for v in notebook.graph.variables()}
    return {name: names[name] for name in KEPT}


def test_slots_are_kept_with_their_values(notebook: Any, holder_of: Any) -> None:
    notebook.run("a", VARIABLE)
    notebook.run("b", TRAIN)
    before, names, holder = kept(notebook), notebook.names, holder_of(notebook.graph)
    notebook.run("b", TRAIN)
    assert kept(notebook) == before
    assert notebook.names == names
    assert all(holder.has_value(op) for op in before.values())
    notebook.run("a", VARIABLE)
    assert kept(notebook) == before


def test_training_goes_on_after_its_cell_ran_again(notebook: Any) -> None:
    notebook.run("a", VARIABLE)
    notebook.run("b", TRAIN)
    notebook.run("s", "sess = fb.Session()")
    notebook.run("r", "for _ in range(3): sess.run(train)\nvalue = sess.run(W)")
    notebook.run("b", TRAIN)
    notebook.run("r", "for _ in range(3): sess.run(train)\nvalue = sess.run(W)")
    again = notebook["value"]
    notebook.run("s", "sess = fb.Session()")
    notebook.run("r2", "for _ in range(6): sess.run(train)\nvalue = sess.run(W)")
    assert again.tolist() == notebook["value"].tolist()


def test_another_learning_rate_keeps_the_slots(notebook: Any, holder_of: Any) -> None:
    notebook.run("a", VARIABLE)
    notebook.run("b", TRAIN)
    before, holder = kept(notebook), holder_of(notebook.graph)
    notebook.run("b", TRAIN.replace("0.1", "0.01"))
    assert kept(notebook) == before
    assert all(holder.has_value(op) for op in before.values())
    assert not notebook.graph.stale()


def test_an_optimizer_of_another_cell_makes_its_slots_again(notebook: Any, holder_of: Any) -> None:
    notebook.run("a", VARIABLE)
    notebook.run("o", "optimizer = fb.train.AdamOptimizer(0.1)")
    notebook.run("b", "train = optimizer.minimize(loss)")
    before, holder = kept(notebook), holder_of(notebook.graph)
    for _ in range(2):
        notebook.run("b", "train = optimizer.minimize(loss)")
        assert kept(notebook) == before
        assert [v.op for v in notebook["optimizer"].variables()] == sorted(
            before.values(), key=lambda op: op.name
        )
    assert all(holder.has_value(op) for op in before.values())
    assert not notebook.graph.stale()


def test_slots_that_were_retired_are_made_again(notebook: Any) -> None:
    notebook.run("a", VARIABLE)
    notebook.run("o", "optimizer = fb.train.AdamOptimizer(0.1)")
    notebook.run("b", "train = optimizer.minimize(loss)")
    notebook.run("b", "pass")
    assert len(notebook.graph.variables()) == 1
    notebook.run("c", "train = optimizer.minimize(loss)")
    assert set(kept(notebook)) == set(KEPT)
    assert not notebook.graph.stale()


def test_a_redefined_variable_gets_slots_of_its_own(notebook: Any) -> None:
    notebook.run("a", VARIABLE)
    notebook.run("b", TRAIN)
    before = kept(notebook)
    notebook.run("a", VARIABLE.replace("2.0", "3.0"))
    assert notebook.graph.stale()
    notebook.run("b", TRAIN)
    after = kept(notebook)
    assert all(after[name] is not before[name] for name in KEPT[:2])
    assert not notebook.graph.stale()
    assert all(notebook["W"].op in after[name].colocation for name in KEPT[:2])


def test_an_optimizer_lets_go_of_what_was_redefined(notebook: Any) -> None:
    notebook.run("a", VARIABLE)
    notebook.run("o", "optimizer = fb.train.AdamOptimizer(0.1)")
    notebook.run("b", "train = optimizer.minimize(loss)")
    first = weakref.ref(notebook["W"].op)
    for value in ("3.0", "4.0", "5.0"):
        notebook.run("a", VARIABLE.replace("2.0", value))
        notebook.run("b", "train = optimizer.minimize(loss)")
        assert len(notebook["optimizer"].variables()) == 4
    gc.collect()
    assert first() is None


@pytest.mark.parametrize(
    "source",
    [
        "step = fb.train.get_or_create_global_step()",
        "ema = fb.train.ExponentialMovingAverage(0.9)\nmove = ema.apply([W, loss])",
        "move = fb.train.assign_moving_average(W, [0.0, 1.0], 0.9)",
        "fb.mark_as_update(fb.assign(W, [0.0, 1.0]))",
        "search = fb.train.LBFGSOptimizer(loss)",
        "rate = fb.train.cosine_decay_restarts(0.1, fb.constant(3), 10)",
    ],
    ids=["counter", "averages", "corrected", "mark", "lbfgs", "schedule"],
)
def test_running_again_changes_nothing(notebook: Any, holder_of: Any, source: str) -> None:
    notebook.run("a", VARIABLE)
    notebook.run("b", source)
    names, operations = notebook.names, notebook.graph.operations
    updates = notebook.graph.updates()
    holder = holder_of(notebook.graph)
    notebook.run("b", source)
    assert notebook.names == names
    assert notebook.graph.operations == operations
    assert notebook.graph.updates() == updates
    holder.extend()
    assert all(holder.has_value(v.op) for v in notebook.graph.variables())
    assert not notebook.graph.stale()


def test_the_counter_of_another_cell_is_found(notebook: Any) -> None:
    notebook.run("a", "step = fb.train.get_or_create_global_step()")
    notebook.run("b", "same = fb.train.get_or_create_global_step()")
    assert notebook["same"] is notebook["step"]
    notebook.run("a", "step = fb.train.get_or_create_global_step()")
    notebook.run("b", "same = fb.train.get_or_create_global_step()")
    assert notebook["same"].op is notebook["step"].op
    assert notebook.names.count("global_step") == 1


def test_a_mark_goes_with_its_cell(notebook: Any) -> None:
    notebook.run("a", VARIABLE)
    notebook.run("b", "moved = fb.assign(W, [0.0, 1.0])")
    notebook.run("c", "fb.mark_as_update(moved)")
    assert notebook.graph.updates() == [notebook["moved"].op]
    notebook.run("b", "moved = fb.assign(W, [0.0, 2.0])")
    assert notebook.graph.updates() == []  # What was marked is retired.
    notebook.run("c", "fb.mark_as_update(moved)")
    assert notebook.graph.updates() == [notebook["moved"].op]
    notebook.run("c", "pass")
    assert notebook.graph.updates() == []


TWO = """
W = fb.Variable(fb.ones([{width}]), name='W')
b = fb.Variable(1.0, name='b')
loss = fb.reduce_sum(fb.square(W)) + fb.square(b)
"""
AFRESH = (
    "flowbook: the values of Adam/beta1_power, Adam/beta2_power, b/Adam/m, b/Adam/v start afresh, "
    "as others that they belong with do"
)


def trained(notebook: Any, train: str) -> None:
    notebook.run("a", TWO.format(width=2))
    notebook.run("b", train)
    notebook.run("s", "sess = fb.Session()")
    notebook.run("r", "for _ in range(50): sess.run(train)")


def test_a_state_is_renewed_together(notebook: Any) -> None:
    trained(notebook, TRAIN)
    notebook.run("a", TWO.format(width=3))
    assert "flowbook: kept the values of b " in notebook.output
    notebook.run("b", TRAIN)
    assert AFRESH in notebook.notices
    assert "kept the values" not in notebook.output
    # As a training that begins now: 0.1 is Adam's first step, whatever the gradient.
    before = notebook["sess"].run(notebook["b"])
    notebook["sess"].run(notebook["train"])
    after = notebook["sess"].run(notebook["b"])
    assert abs(before - after) == pytest.approx(0.1, rel=1e-3)
    notebook.run("b", TRAIN)
    assert "start afresh" not in notebook.output
    [said] = notebook.notices
    assert "kept the values of" in said
    assert "Adam/beta1_power" in said


def test_a_variable_that_is_new_renews_the_state(notebook: Any) -> None:
    trained(notebook, TRAIN)
    notebook.run("c", "c = fb.Variable(1.0, name='c')\nloss = loss + fb.square(c)")
    notebook.run("b", TRAIN)
    renewed = [line for line in notebook.notices if "others that they belong with" in line]
    assert len(renewed) == 1
    assert all(name in renewed[0] for name in ("W/Adam/m", "b/Adam/v", "Adam/beta2_power"))


def test_slots_that_share_nothing_are_kept_one_by_one(notebook: Any) -> None:
    momentum = "train = fb.train.MomentumOptimizer(0.1, 0.9).minimize(loss)"
    trained(notebook, momentum)
    notebook.run("a", TWO.format(width=3))
    notebook.run("b", momentum)
    assert "kept the values of b/Momentum/" in notebook.output
    assert "belong with" not in notebook.output
