"""The Transformer: attention and dense layers only.

Source: Vaswani et al., "Attention is all you need", 2017. `translate` is the whole encoder and
decoder; `language_model` a stack of decoder layers that tells each token from those before it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import flowbook as fb
from examples import figures


class Sizes(NamedTuple):
    """The sizes of a model, in the paper's words: N, d_model, d_ff, h."""

    layers: int
    width: int
    inner: int
    heads: int


BASE, BIG, SMALL = Sizes(6, 512, 2048, 8), Sizes(6, 1024, 4096, 16), Sizes(2, 64, 128, 4)


def attention(
    x: Any, memory: Any, heads: int, is_causal: bool = False, name: str = "attention"
) -> Any:
    """Attention with several heads from `x` to `memory`, [batch, length, width] each."""
    width = x.shape[-1]
    with fb.name_scope(name):
        kernels = [
            fb.Variable(fb.initializers.glorot_uniform()([width, width], x.dtype), name=part)
            for part in ("query", "key", "value", "output")
        ]
        return fb.nn.multi_head_attention(x, memory, memory, heads, *kernels, is_causal=is_causal)


def _residual(x: Any, change: Any, rate: float, training: Any) -> Any:
    return fb.layers.layer_normalization(x + fb.layers.dropout(change, rate, training))


def _inner(x: Any, inner: int) -> Any:
    with fb.name_scope("inner"):
        hidden = fb.layers.dense(x, inner, fb.nn.relu)
        return fb.layers.dense(hidden, x.shape[-1])


def encoder_layer(x: Any, sizes: Sizes, rate: float = 0.0, training: Any = False) -> Any:
    """Attention to itself, then two dense layers; [batch, length, width]."""
    x = _residual(x, attention(x, x, sizes.heads), rate, training)
    return _residual(x, _inner(x, sizes.inner), rate, training)


def decoder_layer(
    x: Any, memory: Any, sizes: Sizes, rate: float = 0.0, training: Any = False
) -> Any:
    """Attention to what came before, to the memory if there is one, then two dense layers."""
    x = _residual(x, attention(x, x, sizes.heads, is_causal=True), rate, training)
    if memory is not None:
        x = _residual(x, attention(x, memory, sizes.heads, name="memory"), rate, training)
    return _residual(x, _inner(x, sizes.inner), rate, training)


def positions(length: int, width: int) -> Any:
    """Sines and cosines of each position, [length, width] (section 3.5 there)."""
    place = np.arange(length)[:, None]
    rate = np.exp(-np.log(10_000) * np.arange(0, width, 2) / width)
    found = np.zeros([length, width], np.float32)
    found[:, 0::2], found[:, 1::2] = np.sin(place * rate), np.cos(place * rate)[:, : width // 2]
    return found


def _embedded(table: Any, tokens: Any, width: int) -> Any:
    rows = fb.nn.embedding_lookup(table, tokens) * width**0.5
    return rows + positions(tokens.shape[1], width)


def _table(vocabulary: int, width: int) -> Any:
    """The embeddings, which serve as the last layer's weights, too."""
    start = fb.random_normal([vocabulary, width], stddev=width**-0.5)
    return fb.Variable(start, name="embeddings")


def translate(
    source: Any,
    target: Any,
    vocabulary: int,
    sizes: Sizes = BASE,
    rate: float = 0.1,
    training: Any = False,
) -> Any:
    """The logits [batch, length, vocabulary] of the token after each of the target's.

    Args:
        source: [batch, length], int32; the length is known.
        target: likewise, beginning with a token that says so.
        vocabulary: how many tokens both languages have together.
        sizes: the sizes of the model.
        rate: the part that dropout drops.
        training: a bool, or a bool tensor: whether dropout acts.
    """
    table = _table(vocabulary, sizes.width)
    memory = fb.layers.dropout(_embedded(table, source, sizes.width), rate, training)
    for layer in range(sizes.layers):
        with fb.name_scope(f"encoder{layer}"):
            memory = encoder_layer(memory, sizes, rate, training)
    x = fb.layers.dropout(_embedded(table, target, sizes.width), rate, training)
    for layer in range(sizes.layers):
        with fb.name_scope(f"decoder{layer}"):
            x = decoder_layer(x, memory, sizes, rate, training)
    return fb.tensordot(x, fb.transpose(table), 1)


def language_model(tokens: Any, vocabulary: int, sizes: Sizes = SMALL) -> Any:
    """The logits [batch, length, vocabulary] of the token after each."""
    table = _table(vocabulary, sizes.width)
    x = _embedded(table, tokens, sizes.width)
    for layer in range(sizes.layers):
        with fb.name_scope(f"layer{layer}"):
            x = decoder_layer(x, None, sizes)
    return fb.tensordot(x, fb.transpose(table), 1)


def main(steps: int = 400, seed: int = 1, figure: Any = None) -> float:
    """Learn to write numbers backwards; return the share of digits that are right in new ones."""
    fb.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    source, target = [fb.placeholder(fb.int32, [None, 6], name=n) for n in ("source", "target")]
    logits = translate(source, fb.pad(target[:, :-1], [[0, 0], [1, 0]]), 11, SMALL, rate=0.0)
    loss = fb.losses.sparse_softmax_cross_entropy(target, logits)
    step = fb.train.AdamOptimizer(2e-3).minimize(loss)
    share = fb.reduce_mean(fb.cast(fb.equal(fb.argmax(logits, 2, fb.int32), target), fb.float32))
    shares = []
    with fb.Session() as sess:
        for count in [32] * steps + [200]:  # The last ones are read before it learns from them.
            numbers = rng.integers(1, 11, (count, 6))
            feeds = {source: numbers, target: numbers[:, ::-1]}
            shares.append(float(sess.run([share, step], feeds)[0]))
    figures.curves(figure, "share of digits right", steps, {"new numbers": shares}, by_chance=0.1)
    print(f"{shares[-1]:.1%} of the digits of new numbers are right, backwards; by chance 10%")
    return shares[-1]


if __name__ == "__main__":
    figures.run(main)
