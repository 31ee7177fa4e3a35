"""Translation with attention: numbers in words become digits, written one by one.

An encoder reads "seven thousand and five" from both ends. A decoder writes "7005": at each step it
looks at all words, each as much as it matters now. `decoding.py` finds what it writes: greedily, by
drawing, or by beam search.

`python -m examples.translation` trains it and translates numbers that it has never seen.

Source: Luong, Pham, Manning, "Effective approaches to attention-based neural machine translation",
2015; its "general" attention and input feeding (sections 3.1 and 3.3). The encoder: Bahdanau, Cho,
Bengio, "Neural machine translation by jointly learning to align and translate", 2014.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import flowbook as fb
from examples import decoding, figures
from examples.numbers_in_words import END, START, SYMBOLS, WORDS, batch_of, drawn, in_digits


class Translator:
    """The model's variables, and what it makes of sources."""

    def __init__(self, source: Any, width: int = 32, units: int = 64) -> None:
        """Make the variables, and read the sources.

        Args:
            source: [batch, words], int32, filled up with zeros.
            width: the width of the embeddings.
            units: the width of the states.
        """
        self.units, self.count = units, fb.shape(source)[0]
        is_word = fb.greater(source, 0)
        self.mask = is_word[:, None]
        zeros = fb.zeros([self.count, units])
        outputs, states = fb.nn.bidirectional_dynamic_rnn(
            fb.layers.gru_cell(units, name="forwards"),
            fb.layers.gru_cell(units, name="backwards"),
            fb.layers.embedding(source, len(WORDS), width, name="words"),
            zeros,
            zeros,
            sequence_length=fb.reduce_sum(fb.cast(is_word, fb.int32), 1),
        )
        self.memory = fb.concat(outputs, 2)
        self.keys = fb.layers.dense(self.memory, units, use_bias=False, name="keys")
        first = fb.layers.dense(fb.concat(states, 1), units, fb.tanh, name="first")
        self.first_state = (first, zeros)
        self.embeddings = _variable([SYMBOLS + 1, width], "embeddings")
        self.cell = fb.layers.gru_cell(units, name="decoder")
        self.joining = _variable([3 * units, units], "joining")
        self.kernel = _variable([units, SYMBOLS], "kernel")

    def step(self, last: Any, state: Any) -> tuple[Any, Any]:
        """A cell: the output after the symbols `last`, [hypotheses], and the next state.

        There are equally many hypotheses of each source, one source's after the other's.
        """
        hidden, output = state
        x = fb.concat([fb.nn.embedding_lookup(self.embeddings, last), output], 1)
        _, hidden = self.cell(x, hidden)
        queries = fb.reshape(hidden, [self.count, -1, self.units])
        seen = fb.nn.scaled_dot_product_attention(
            queries, self.keys, self.memory, self.mask, scale=1.0
        )
        seen = fb.reshape(seen, [-1, 2 * self.units])
        output = fb.tanh(fb.matmul(fb.concat([seen, hidden], 1), self.joining))
        return output, (hidden, output)

    def loss(self, target: Any) -> Any:
        """The mean cross entropy of a symbol, when those before it are right.

        Args:
            target: [batch, steps], int32, each ended and filled up by `END`.
        """
        last = fb.concat([fb.fill([self.count, 1], START), target[:, :-1]], 1)
        outputs, _ = fb.nn.dynamic_rnn(self.step, last, self.first_state)
        losses = fb.nn.sparse_softmax_cross_entropy_with_logits(
            labels=target, logits=fb.tensordot(outputs, self.kernel, 1)
        )
        counts = fb.cast(fb.not_equal(last, END), fb.float32)
        return fb.reduce_sum(losses * counts) / fb.reduce_sum(counts)

    def following(self, last: Any, state: Any) -> tuple[Any, Any]:
        """How likely each symbol is, as logarithms [hypotheses, symbols], and the next state."""
        output, state = self.step(last, state)
        return fb.nn.log_softmax(fb.matmul(output, self.kernel)), state


def _variable(shape: list[int], name: str) -> Any:
    return fb.Variable(fb.initializers.glorot_uniform()(shape), name=name)


def training_step(loss: Any, steps: int, rate: float = 5e-3) -> Any:
    """Adam, with a rate that falls to nothing in so many steps."""
    done = fb.train.get_or_create_global_step()
    optimizer = fb.train.AdamOptimizer(fb.train.cosine_decay(rate, done, steps))
    return optimizer.minimize(loss, done)


def main(steps: int = 600, batch: int = 64, seed: int = 1, figure: Any = None) -> dict[str, float]:
    """Train, and tell for each way of writing how many held-out numbers it translates right."""
    fb.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    source = fb.placeholder(fb.int32, [None, None], name="source")
    target = fb.placeholder(fb.int32, [None, None], name="target")
    model = Translator(source)
    loss = model.loss(target)
    step = training_step(loss, steps)
    ways = {
        "greedy": decoding.greedy(model).symbols,
        "sampled": decoding.sampled(model, seed).symbols,
        "beam search": decoding.beam_search(model, 4).symbols[:, 0],
    }
    right = {}
    start, losses = time.perf_counter(), []
    with fb.Session() as sess:
        for done in range(1, steps + 1):
            sources, targets = batch_of(drawn(batch, rng, is_held_out=False))
            losses.append(sess.run([loss, step], {source: sources, target: targets})[0])
            if done % 100 == 0:
                print(f"{done} steps, {time.perf_counter() - start:.0f} s: loss {losses[-1]:.4f}")
        numbers = np.unique(drawn(1000, rng, is_held_out=True))
        sources, _ = batch_of(numbers)
        for way, symbols in ways.items():
            digits = in_digits(sess.run(symbols, {source: sources}))
            right[way] = float(np.mean([a == str(b) for a, b in zip(digits, numbers, strict=True)]))
            print(f"{way}: {right[way]:.1%} of {len(numbers)} are right")
    figures.curves(figure, "loss of a digit", steps, {"new numbers": losses})
    return right


if __name__ == "__main__":
    figures.run(main)
