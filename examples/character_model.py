"""A character model: it reads Python's own source letter by letter, and writes on.

`python -m examples.character_model` trains it, and prints what it writes. The figure that shows
what it has learnt is how many bits a letter costs of a part that it has never read; beside it
stands what a letter costs if only the letters' frequencies are known.

Source: Graves, "Generating sequences with recurrent neural networks", 2013.
"""

from __future__ import annotations

import argparse
import inspect
from typing import Any

import numpy as np

import flowbook as fb
from examples import figures


class CharacterModel:
    """Tells each letter from those before it.

    Args:
        letters: how many letters there are.
        units: the width of the state.
    """

    def __init__(self, letters: int, units: int = 64) -> None:
        self.letters = letters
        self.cell = fb.layers.lstm_cell(units)
        self.output = fb.Variable(fb.initializers.glorot_uniform()([units, letters]), name="output")

    def read(self, letter: Any, state: Any) -> tuple[Any, Any]:
        """The scores [batch, letters] of what follows a letter [batch], and the next state."""
        heard, state = self.cell(fb.one_hot(letter, self.letters), state)
        return heard @ self.output, state

    def bits(self, text: Any) -> Any:
        """What a letter of texts [batch, steps] costs; the first is given."""
        start = fb.nn.zero_state(self.cell, fb.shape(text)[0])
        scores, _ = fb.nn.dynamic_rnn(self.read, text[:, :-1], start)
        return fb.losses.sparse_softmax_cross_entropy(text[:, 1:], scores) / np.log(2)

    def written(self, first: Any, length: int) -> Any:
        """Letters [length] that are drawn one after the other, the first of them after `first`."""

        def write(last: Any, _: Any) -> Any:
            letter, state = last
            scores, state = self.read(letter, state)
            return fb.random_categorical(scores, 1, fb.int32)[:, 0], state

        start = (fb.constant([first]), fb.nn.zero_state(self.cell, 1))
        return fb.scan(write, fb.range(length), start)[0][:, 0]


def bits_by_frequency(training: Any, held_out: Any, letters: int) -> float:
    """What a letter costs if only the letters' frequencies are known."""
    counts = np.bincount(training, minlength=letters) + 1
    return float(-np.mean(np.log2(counts / counts.sum())[held_out]))


def main(
    steps: int = 500, units: int = 64, length: int = 40, seed: int = 1, figure: Any = None
) -> tuple[float, float]:
    """Train; return what a held-out letter costs, and what it costs by frequency, in bits."""
    fb.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    source = inspect.getsource(argparse)
    alphabet = sorted(set(source))
    codes = np.array([alphabet.index(letter) for letter in source], np.int32)
    held_out, training = np.split(codes, [len(codes) // 10])

    model = CharacterModel(len(alphabet), units)
    text = fb.placeholder(fb.int32, [None, None], name="text")
    bits = model.bits(text)
    step = fb.train.AdamOptimizer(1e-2).minimize(bits)
    written = model.written(alphabet.index("\n"), 300)
    costs: dict[str, list[float]] = {"read": [], "never seen": []}
    pieces = held_out[: len(held_out) // 100 * 100].reshape(-1, 100)
    with fb.Session() as sess:
        for done in range(1, steps + 1):
            begins = rng.integers(len(training) - length, size=(32, 1))
            seen = {text: training[begins + np.arange(length)]}
            costs["read"].append(sess.run([bits, step], seen)[0])
            if done % 20 == 0:
                costs["never seen"].append(float(sess.run(bits, {text: pieces})))
        print("".join(alphabet[code] for code in sess.run(written)))
    simple = bits_by_frequency(training, held_out, len(alphabet))
    cost = costs["never seen"][-1]
    figures.curves(figure, "bits a letter", steps, costs, by_chance=simple)
    print(f"{cost:.2f} bits a letter; by frequency {simple:.2f}")
    return cost, simple


if __name__ == "__main__":
    figures.run(main)
