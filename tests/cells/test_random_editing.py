"""Notebooks edited at random: whatever ran again, failed or was deleted, values are as written.

Beside the notebook runs a model of it: a cell's name stands for a function of what the names in
its text stood for when it ran. What a cell builds as before is the same, so what was built from it
takes its feeds; a variable keeps its value as long as it is defined the same way.
"""

import itertools
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import flowbook as fb

NAMES = [f"t{i}" for i in range(6)]
STEPS = 25
# From here on rounding could change which branch is taken.
LARGE = 1e9

# What a cell may say of {it}, by {a}, {b} and the number {v}; and what that is.
TENSORS: dict[str, Callable[..., float]] = {
    "{it} = fb.constant({v}, fb.float64)": lambda a, b, v: v,
    "{it} = fb.placeholder_with_default(np.float64({v}), [], name='p_{it}')": lambda a, b, v: v,
    "{it} = {a} + {b} * {v}": lambda a, b, v: a + b * v,
    "{it} = fb.add({a}, {v}, name='shared')": lambda a, b, v: a + v,
    """
with fb.name_scope('scope'):
    {it} = {a} - {v}
    other = {it} * 2.0""": lambda a, b, v: a - v,
    """
for _ in range(3):
    copy = fb.identity({a} * {v})
{it} = copy""": lambda a, b, v: a * v,
    """
with fb.control_dependencies([{a}]):
    {it} = fb.identity({b})""": lambda a, b, v: b,
    """
@fb.function
def f_{it}(x):
    return x * {v} + 1.0
{it} = f_{it}({a})""": lambda a, b, v: a * v + 1,
    """
@fb.function(inline=False)
def f_{it}(x):
    return fb.square(x) * {v}
[{it}] = fb.gradients(f_{it}({a}), [{a}])""": lambda a, b, v: 2 * a * v,
    """
@fb.function(inline=False)
def f_{it}(x, w):
    return x * w + 1.0
w_{it} = fb.Variable({v}, dtype=fb.float64)
{it} = f_{it}({a}, w_{it})""": lambda a, b, v: a * v + 1,
    "{it} = fb.cond({a} > {b}, lambda: {a} * 2.0, lambda: {b} + {v})": lambda a, b, v: (
        a * 2 if a > b else b + v
    ),
    """
{it} = fb.case(
    [({a} > {v}, lambda: {a} + 1.0), ({b} > {v}, lambda: {b} + 2.0)],
    default=lambda: fb.constant({v}, fb.float64),
)""": lambda a, b, v: a + 1 if a > v else b + 2 if b > v else v,
    """
def body(i, x):
    return i + 1, fb.cond(fb.equal(i, 0), lambda: x + {a}, lambda: x * {b})
_, {it} = fb.while_loop(lambda i, x: i < 2, body, [0, np.float64({v})])""": lambda a, b, v: (
        (v + a) * b
    ),
    """
_, y = fb.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x * {a}), [0, np.float64({v})])
[{it}] = fb.gradients(y, [{a}])""": lambda a, b, v: 2 * a * v,
    "{it} = fb.reduce_sum(fb.map_fn(lambda x: x * {a} + {b}, np.array([1.0, {v}])))": (
        lambda a, b, v: a * (1 + v) + 2 * b
    ),
    "{it} = fb.scan(lambda x, e: x * e + {a}, np.array([1.0, 2.0]), np.float64({v}))[-1]": (
        lambda a, b, v: (v + a) * 2 + a
    ),
}
VARIABLE = "{it} = fb.Variable({v}, dtype=fb.float64, name='v_{it}')"


@dataclass(frozen=True)
class Text:
    """What a cell says."""

    form: str
    it: str
    a: str
    b: str
    v: float

    @property
    def source(self) -> str:
        return self.form.format(it=self.it, a=self.a, b=self.b, v=self.v).lstrip()

    @property
    def names(self) -> list[str]:
        """Those that it speaks of."""
        return [name for name in "ab" if f"{{{name}}}" in self.form]


@dataclass(eq=False)
class Meaning:
    """What a name stands for; the number is a variable's value."""

    text: Text
    children: dict[str, "Meaning"]
    number: float

    def value(self, fed: "dict[Meaning, float] | None" = None) -> float:
        """What a run gives of it."""
        if fed and self in fed:
            return fed[self]
        if self.text.form == VARIABLE:
            return self.number
        found = {name: child.value(fed) for name, child in self.children.items()}
        return TENSORS[self.text.form](**{"a": 0.0, "b": 0.0, **found}, v=self.number)


class Editor:
    """Edits and runs a notebook at random, and knows what its names stand for."""

    def __init__(self, notebook: Any, seed: int) -> None:
        self.notebook = notebook
        self.draws = random.Random(seed)
        # No two constants are the same: one would take the other's place, and its feeds.
        self.numbers = (1 + i / 64 for i in itertools.count(1))
        self.cells = {it: f"cell of {it}" for it in NAMES}
        self.said: dict[str, Text] = {}
        self.known: dict[str, Meaning] = {}
        self.notebook.run("session", "import numpy as np\nsess = fb.Session()")

    def step(self) -> None:
        """Do something to one of the cells."""
        it = self.draws.choice(NAMES)
        chance = self.draws.random()
        if it not in self.said or chance > 0.5:
            a, b = self.draws.choices(NAMES, k=2)
            form = self.draws.choice([*TENSORS, VARIABLE])
            self.run(Text(form, it, a, b, next(self.numbers)))
        elif chance > 0.25:
            self.run(self.said[it])
        elif chance > 0.15:
            self.train()
        elif chance > 0.05:
            self.notebook.run(self.cells[it], "1 / 0", fails=True)
        else:
            self.delete(it)

    def run(self, text: Text) -> None:
        """Run a cell with a text, unless that speaks of what there is not."""
        children = {n: self.known[getattr(text, n)] for n in text.names if self.has(text, n)}
        meaning = Meaning(text, children, text.v)
        if len(children) < len(text.names) or abs(meaning.value()) > LARGE:
            return
        before = self.known.get(text.it)
        if before and before.text == text and before.children == children:
            meaning = before
        self.notebook.run(self.cells[text.it], text.source)
        self.said[text.it], self.known[text.it] = text, meaning

    def has(self, text: Text, name: str) -> bool:
        return getattr(text, name) in self.known

    def train(self) -> None:
        """Give a variable another value."""
        variables = [it for it, meaning in self.known.items() if meaning.text.form == VARIABLE]
        if variables:
            it = self.draws.choice(variables)
            self.notebook.run("training", f"sess.run(fb.assign_add({it}, 1.0))")
            self.known[it].number += 1

    def delete(self, it: str) -> None:
        self.notebook.run("another", "pass", deleted=[self.cells[it]])
        self.cells[it] += ", pasted"
        del self.said[it]
        if self.known[it].text.form == VARIABLE:
            del self.known[it]  # Whether its value is still there is another matter.

    def check(self) -> None:
        """Compare what runs give with what was written, without feeds and with one."""
        wanted = [self.notebook[it] for it in self.known]
        run = self.notebook["sess"].run
        assert run(wanted) == pytest.approx([m.value() for m in self.known.values()])
        free = [it for it, meaning in self.known.items() if meaning.text.form != VARIABLE]
        if free:
            it = self.draws.choice(free)
            given = run(wanted, {self.notebook[it]: 0.5})
            fed = {self.known[it]: 0.5}
            assert given == pytest.approx([m.value(fed) for m in self.known.values()])


@pytest.mark.parametrize("seed", range(40))
def test_values_are_as_written(notebook: Any, seed: int) -> None:
    editor = Editor(notebook, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fb.errors.StaleDefinitionWarning)
        for _ in range(STEPS):
            editor.step()
            editor.check()
