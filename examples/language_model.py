"""A language model of two LSTM layers, unrolled: each word is told from those before it.

Source: Zaremba, Sutskever, Vinyals, "Recurrent neural network regularization", 2014; the sizes are
those of its unregularised ("small") model: 200 units, 20 steps, 10,000 words.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

import flowbook as fb
from examples import figures


class LanguageModel(NamedTuple):
    """What the model computes.

    Attributes:
        logits: [batch, steps, words].
        loss: the mean cross entropy of a word; its exponential is the perplexity.
        initial_state: for each layer `(c, h)`; it is fed the last batch's `final_state`.
        final_state: the state after the last step.
    """

    logits: Any
    loss: Any
    initial_state: Any
    final_state: Any


def language_model(
    words: Any, targets: Any, vocabulary: int = 10_000, units: int = 200, layers: int = 2
) -> LanguageModel:
    """Build the model.

    Args:
        words: [batch, steps], int32; both are known.
        targets: [batch, steps], int32: the word after each.
        vocabulary: how many words there are.
        units: the width of embeddings and states.
        layers: how many LSTM layers there are.
    """
    start = fb.initializers.random_uniform(-0.1, 0.1)
    batch = words.shape[0]
    x = fb.layers.embedding(words, vocabulary, units, initializer=start, name="embedding")
    initial, final = [], []
    for layer in range(layers):
        zeros = fb.zeros([batch, units])
        c, h = (
            fb.placeholder_with_default(zeros, [batch, units], name=f"{part}{layer}")
            for part in "ch"
        )
        x, end = fb.layers.lstm(
            x, units, (c, h), forget_bias=0.0, kernel_initializer=start, name=f"lstm{layer}"
        )
        initial.append((c, h))
        final.append(end)
    logits = fb.layers.dense(x, vocabulary, kernel_initializer=start, name="softmax")
    losses = fb.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    return LanguageModel(logits, fb.reduce_mean(losses, name="loss"), tuple(initial), tuple(final))


def training_step(loss: Any, rate: Any = 1.0, largest_norm: float = 5.0) -> Any:
    """Gradient descent, with the gradients' common norm clipped."""
    optimizer = fb.train.GradientDescentOptimizer(rate)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, _ = fb.clip_by_global_norm(gradients, largest_norm)
    return optimizer.apply_gradients(zip(clipped, variables, strict=True))


def main(steps: int = 800, seed: int = 1, figure: Any = None) -> tuple[float, float]:
    """Train on a module of Python's; return perplexities: of held-out words, and by frequency."""
    fb.set_random_seed(seed)
    text = re.findall(r"\w+|\S|\n *", inspect.getsource(argparse))
    known = [word for word, _ in Counter(text).most_common(499)]
    number = {word: i for i, word in enumerate(known, 1)}  # 0 is all the others.
    codes = np.array([number.get(word, 0) for word in text], np.int32)
    cut = len(codes) // 21
    held_out, rows = codes[: cut + 1][None], codes[cut : 21 * cut].reshape(20, cut)

    words = fb.placeholder(fb.int32, [20, 20], name="words")
    targets = fb.placeholder(fb.int32, [20, 20], name="targets")
    model = language_model(words, targets, vocabulary=500, units=64)
    step = training_step(model.loss, rate=4.0)
    starts = np.linspace(0, cut - 20, 20).astype(int)[:, None] + np.arange(20)
    unseen = {words: held_out[0][starts], targets: held_out[0][starts + 1]}
    costs: dict[str, list[float]] = {"read": [], "never seen": []}
    with fb.Session() as sess:
        kept: dict[Any, Any] = {}
        for i in range(steps):
            at = 20 * i % (cut - 21)
            batch = {words: rows[:, at : at + 20], targets: rows[:, at + 1 : at + 21]}
            cost, _, after = sess.run([model.loss, step, model.final_state], {**batch, **kept})
            costs["read"].append(float(np.exp(cost)))
            if i % 20 == 19:
                costs["never seen"].append(float(np.exp(sess.run(model.loss, unseen))))
            kept = {model.initial_state: after} if at + 41 < cut else {}
    frequency = (np.bincount(rows.ravel(), minlength=500) + 1) / (rows.size + 500)
    simple = float(np.exp(-np.log(frequency[held_out[0]]).mean()))
    perplexity = costs["never seen"][-1]
    figures.curves(figure, "perplexity", steps, costs, by_chance=simple)
    print(f"perplexity {perplexity:.0f} of words that it has never seen; by frequency {simple:.0f}")
    return perplexity, simple


if __name__ == "__main__":
    figures.run(main)
