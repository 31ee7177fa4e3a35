"""A training goes on to the bit as if nobody had touched the notebook.

Between its steps cells run again as they were, break off at their beginning or their end, are
mended, and others are added. What is trained is drawn: layers, functions, templates, loops, random
numbers, running averages, and an optimizer.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import flowbook as fb
from tests.cells.conftest import Notebook

STEPS = 5

# What a cell may say of {it}, made of {a}; both are [n, 6].
LAYERS = [
    "{it} = fb.layers.dense({a}, 6, activation=fb.nn.relu)",
    "{it} = fb.layers.dense({a}, 6, activation=fb.tanh, name='named_{it}')",
    "{it} = fb.layers.dropout(fb.layers.dense({a}, 6), 0.3)",
    "{it} = fb.layers.batch_normalization({a}, training=True)",
    "with fb.name_scope('block'):\n    {it} = fb.layers.dense({a}, 6) + {a}",
    "parts_{it} = [fb.layers.dense({a}, 3) for _ in range(2)]\n{it} = fb.concat(parts_{it}, 1)",
    "{it} = {a} + fb.random_normal([6]) * 0.1",
    """
@fb.function(inline=False)
def f_{it}(x, w):
    return fb.sigmoid(fb.matmul(x, w))
w_{it} = fb.Variable(fb.random_normal([6, 6], seed=5))
{it} = f_{it}({a}, w_{it})""",
    """
t_{it} = fb.template(lambda x: fb.layers.dense(x, 6, name='shared'), 't_{it}')
{it} = t_{it}(t_{it}({a}))""",
    """
w_{it} = fb.Variable(np.eye(6, dtype=np.float32) * 0.5)
def turn(i, x):
    return i + 1, fb.tanh(fb.matmul(x, w_{it}))
_, {it} = fb.while_loop(lambda i, x: i < 3, turn, [0, {a}])""",
    """
w_{it} = fb.Variable(np.eye(6, dtype=np.float32) * 0.5)
{it} = fb.cond(fb.reduce_sum({a}) > 0, lambda: fb.matmul({a}, w_{it}), lambda: {a} + w_{it}[0])""",
    """
cell_{it} = fb.layers.lstm_cell(6)
all_{it}, _ = fb.nn.dynamic_rnn(cell_{it}, fb.stack([{a}, {a} * 0.5], 1), dtype=fb.float32)
{it} = all_{it}[:, -1]""",
    """
mean_{it} = fb.Variable(fb.zeros([6]), trainable=False)
with fb.control_dependencies([fb.assign(mean_{it}, (mean_{it} + fb.reduce_mean({a}, 0)) / 2)]):
    {it} = fb.identity({a})""",
]
OPTIMIZERS = [
    "train = fb.train.GradientDescentOptimizer(0.05).minimize(loss)",
    "train = fb.train.MomentumOptimizer(0.05, 0.9).minimize(loss)",
    "train = fb.train.AdamOptimizer(0.01).minimize(loss)",
    """
step = fb.train.get_or_create_global_step()
rate = fb.train.exponential_decay(0.05, step, 3, 0.5)
train = fb.train.RMSPropOptimizer(rate).minimize(loss, global_step=step)""",
    """
optimizer = fb.train.AdagradOptimizer(0.05)
pairs = [(g, v) for g, v in optimizer.compute_gradients(loss) if g is not None]
train = optimizer.apply_gradients([(fb.clip_by_norm(g, 1.0), v) for g, v in pairs])""",
]
DATA = """
import numpy as np
fb.set_random_seed(7)
sess = fb.Session()
draw = np.random.default_rng(0)
xs, ys = draw.normal(size=[2, 40, 6]).astype(np.float32)"""
INPUT = "x, y = [fb.placeholder(fb.float32, [None, 6], name=name) for name in 'xy']"
TRAIN = "value, _ = sess.run([loss, train], {x: xs[8 * turn :][:8], y: ys[8 * turn :][:8]})"


def drawn_cells(draws: random.Random) -> dict[str, str]:
    """The cells of a training, by their ids."""
    cells, last = {"input": INPUT}, "x"
    for it in [f"h{i}" for i in range(draws.randint(1, 4))]:
        cells[it] = draws.choice(LAYERS).format(it=it, a=last).lstrip()
        last = it
    cells["loss"] = f"loss = fb.reduce_mean(fb.square(fb.layers.dense({last}, 6) - y))"
    cells["train"] = draws.choice(OPTIMIZERS).lstrip()
    return cells


def touch(notebook: Notebook, cells: dict[str, str], draws: random.Random) -> None:
    """Do something to a notebook that changes nothing of what it says."""
    cell = draws.choice([*cells])
    chance = draws.random()
    if chance < 0.3:
        below = [*cells][[*cells].index(cell) :]
        for each in below if chance < 0.1 else [cell]:
            notebook.run(each, cells[each])
    elif chance < 0.5:
        notebook.run(cell, cells[cell] + "\n1 / 0", fails=True)
    elif chance < 0.8:
        notebook.run(cell, f"1 / 0\n{cells[cell]}", fails=True)
        notebook.run(cell, cells[cell])
    else:
        rows = draws.randint(1, 3)
        another = f"other = fb.layers.dense(fb.ones([{rows}, 2]), 3)"
        notebook.run("another", f"{another}\nsess.run(other)")


def losses(shell: InteractiveShell, seed: int, between: Callable[..., None]) -> list[float]:
    """The losses of a training, between the steps of which something is done to the notebook."""
    with fb.Graph().as_default():
        notebook, draws = Notebook(shell), random.Random(seed)
        cells = drawn_cells(draws)
        for cell, source in {"data": DATA, **cells}.items():
            notebook.run(cell, source)
        found = []
        for turn in range(STEPS):
            for _ in range(draws.randint(0, 3)):
                between(notebook, cells, draws)
            notebook.run("step", f"turn = {turn}\n{TRAIN}")
            found.append(float(notebook["value"]))
        notebook.run("data", "sess.close()")
        return found


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost(notebook: Any, seed: int) -> None:
    untouched = losses(notebook.shell, seed, lambda *_: None)
    assert len(set(untouched)) > 1
    assert losses(notebook.shell, seed, touch) == untouched
