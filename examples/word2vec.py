"""word2vec: skip-grams with noise-contrastive estimation.

A step reads and changes only the rows of the words in it: its time does not depend on the size of
the vocabulary.

`python -m examples.word2vec` trains it on numbers in words. The figure that shows what it has
learnt is the share of the 27 words from "one" to "ninety" whose nearest one is of the same kind: a
unit, a word from ten to nineteen, or a multiple of ten.

Source: Mikolov et al., "Distributed representations of words and phrases and their
compositionality", 2013.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import flowbook as fb
from examples import figures
from examples.numbers_in_words import WORDS, drawn, in_words


class SkipGram(NamedTuple):
    """What the model computes: the embeddings [vocabulary, width], and the loss of a batch."""

    embeddings: Any
    loss: Any


def skip_gram(
    words: Any, contexts: Any, vocabulary: int, width: int = 128, samples: int = 64
) -> SkipGram:
    """Build the model.

    Args:
        words: [batch], int.
        contexts: [batch, 1], int64: for each word one that stood near it.
        vocabulary: how many words there are; frequent words come first.
        width: the length of an embedding.
        samples: how many noise words each batch shares.
    """
    start = fb.random_uniform([vocabulary, width], -1.0, 1.0)
    embeddings = fb.Variable(start, name="embeddings")
    normal = fb.truncated_normal([vocabulary, width], stddev=width**-0.5)
    weights = fb.Variable(normal, name="nce_weights")
    biases = fb.Variable(fb.zeros([vocabulary]), name="nce_biases")
    embedded = fb.nn.embedding_lookup(embeddings, words)
    losses = fb.nn.nce_loss(weights, biases, contexts, embedded, samples, vocabulary)
    return SkipGram(embeddings, fb.reduce_mean(losses, name="loss"))


def nearest(embeddings: Any, words: Any, count: int) -> Any:
    """The words whose embeddings point most nearly the same way: indices [batch, count]."""
    unit = fb.nn.l2_normalize(embeddings, 1)
    similarity = fb.matmul(fb.gather(unit, words), unit, transpose_b=True)
    return fb.nn.top_k(similarity, count + 1)[1][:, 1:]


def batches(
    text: Sequence[int], size: int, window: int, seed: int = 0
) -> Iterator[tuple[Any, Any]]:
    """Endless batches of words [size] and contexts [size, 1] from a text of word indices."""
    random = np.random.default_rng(seed)
    words = np.asarray(text)
    while True:
        at = random.integers(window, len(words) - window, size)
        by = random.integers(1, window + 1, size) * random.choice([-1, 1], size)
        yield words[at].astype(np.int32), words[at + by].astype(np.int64)[:, None]


def main(steps: int = 3000, seed: int = 1, figure: Any = None) -> tuple[float, float]:
    """Train; return which share of the words is nearest to its kind before and afterwards."""
    fb.set_random_seed(seed)
    numbers = drawn(20_000, np.random.default_rng(seed), is_held_out=False)
    text = [WORDS.index(word) for number in numbers for word in in_words(number)]
    words = fb.placeholder(fb.int32, [None], name="words")
    contexts = fb.placeholder(fb.int64, [None, 1], name="contexts")
    model = skip_gram(words, contexts, len(WORDS), width=8, samples=8)
    step = fb.train.AdamOptimizer(0.02).minimize(model.loss)

    # The words of other kinds, such as "hundred", have none.
    kinds = np.repeat([0, 1, 2, 3, 0], [1, 9, 10, 8, len(WORDS) - 28])
    counted = np.flatnonzero(kinds)
    near = fb.gather(kinds, nearest(model.embeddings, counted, 1)[:, 0])
    share = fb.reduce_mean(fb.cast(fb.equal(near, kinds[counted]), fb.float32))
    read = batches(text, 128, window=1, seed=seed)
    with fb.Session() as sess:
        before = float(sess.run(share))
        for _ in range(steps):
            sess.run(step, dict(zip((words, contexts), next(read), strict=True)))
        after, learnt = sess.run([share, model.embeddings])
    learnt = learnt[counted] / np.linalg.norm(learnt[counted], axis=1, keepdims=True)
    # The plane in which they are spread most.
    places = (learnt - learnt.mean(0)) @ np.linalg.svd(learnt - learnt.mean(0))[2][:2].T
    with figures.axes(figure, size=(5, 4)) as plane:
        plane.scatter(*places.T, c=[figures.COLOURS[kind] for kind in kinds[counted]])
        for word, place in zip(counted, places, strict=True):
            plane.annotate(WORDS[word], place, (3, 3), textcoords="offset points", fontsize=7)
        plane.axis("off")
    print(f"{before:.0%} are nearest to their kind before, {after:.0%} after {steps} steps")
    return before, float(after)


if __name__ == "__main__":
    figures.run(main)
