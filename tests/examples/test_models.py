"""The models have the parameters that the literature says, and learn."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from examples import cifar10, googlenet, language_model, lenet, transformer, word2vec


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def trained(step: Any, loss: Any, feeds: Any, count: int) -> list[float]:
    """The losses of some steps on one batch."""
    with fb.Session() as sess:
        return [float(sess.run([loss, step], feeds)[0]) for _ in range(count)]


def test_lenet_has_60000_parameters(rng: np.random.Generator) -> None:
    images = fb.placeholder(fb.float32, [None, 32, 32, 1])
    labels = fb.placeholder(fb.int32, [None])
    loss = lenet.loss(lenet.lenet(images), labels)
    counts = fb.parameter_counts()
    # Section II.B of the paper counts them layer by layer.
    found = {layer: counts[layer].parameters for layer in ("C1", "S2", "C3", "S4", "C5", "F6")}
    assert found == {"C1": 156, "S2": 12, "C3": 1516, "S4": 32, "C5": 48120, "F6": 10164}
    assert counts.total.parameters == 60_000
    step = fb.train.AdamOptimizer(1e-2).minimize(loss)
    feeds = {images: rng.normal(size=(20, 32, 32, 1)), labels: rng.integers(0, 10, 20)}
    losses = trained(step, loss, feeds, 10)
    assert losses[-1] < 0.8 * losses[0]
    assert not fb.lint(loss=loss)


def test_cifar10_has_the_tutorial_s_parameters_and_operations(rng: np.random.Generator) -> None:
    images = fb.placeholder(fb.float32, [None, 24, 24, 3])
    labels = fb.placeholder(fb.int32, [None])
    logits = cifar10.cifar10(images)
    assert fb.parameter_counts().total.parameters == 1_068_298
    # The tutorial speaks of about 19.5 million multiply-adds for one image.
    products = fb.forecast(logits, {images: (1, 24, 24, 3)}).by_type()
    multiplications = sum(products[t].flops for t in products if "Conv" in t or t == "MatMul") / 2
    assert multiplications == pytest.approx(19.5e6, rel=0.06)
    loss = cifar10.loss(logits, labels)
    step = cifar10.training_step(loss)
    feeds = {images: rng.normal(size=(32, 24, 24, 3)), labels: rng.integers(0, 10, 32)}
    losses = trained(step, loss, feeds, 6)
    assert losses[-1] < losses[0]


# Table 1 of the paper, in thousands.
MODULES = {
    "3a": 159, "3b": 380, "4a": 364, "4b": 437, "4c": 463, "4d": 580, "4e": 840,
    "5a": 1072, "5b": 1388,
}  # fmt: skip


def test_googlenet_has_the_table_s_parameters_and_a_forward_pass(rng: np.random.Generator) -> None:
    images = fb.placeholder(fb.float32, [None, 224, 224, 3])
    logits = googlenet.googlenet(images, with_helpers=True)
    counts = fb.parameter_counts()
    # The table leaves the biases out, and its figures are not quite what its sizes give.
    for name, thousands in MODULES.items():
        found = counts[f"inception_{name}"].parameters
        assert found == pytest.approx(1000 * thousands, rel=0.11 if name == "4c" else 0.05), name
    assert counts["classifier"].parameters == 1_025_000
    helpers = sum(counts[f"helper_{name}"].parameters for name in ("4b", "4e"))
    assert counts.total.parameters == 13_378_280
    assert counts.total.parameters - helpers == 6_998_552
    with fb.Session() as sess:
        [main, first, second] = sess.run(list(logits), {images: rng.normal(size=(1, 224, 224, 3))})
    assert main.shape == first.shape == second.shape == (1, 1000)
    assert np.isfinite(main).all()


def test_the_language_model_carries_its_state() -> None:
    fb.set_random_seed(1)
    words = fb.placeholder(fb.int32, [4, 5])
    targets = fb.placeholder(fb.int32, [4, 5])
    model = language_model.language_model(words, targets, vocabulary=50, units=16)
    step = language_model.training_step(model.loss)
    text = np.arange(4 * 6).reshape(4, 6) % 7
    feeds = {words: text[:, :-1], targets: text[:, 1:]}
    losses = trained(step, model.loss, feeds, 80)
    assert losses[0] == pytest.approx(np.log(50), rel=0.05)
    assert losses[-1] < 0.5 * losses[0]
    with fb.Session() as sess:
        state = sess.run(model.final_state, feeds)
        flat = zip(itertools.chain(*model.initial_state), itertools.chain(*state), strict=True)
        carried = sess.run(model.loss, {**feeds, **dict(flat)})
        assert carried != sess.run(model.loss, feeds)


def test_the_small_language_model_has_its_parameters() -> None:
    words = fb.placeholder(fb.int32, [20, 2])
    language_model.language_model(words, words)
    # Embeddings and softmax of 10,000 words, and 4 (200 + 200 + 1) 200 in each layer.
    assert fb.parameter_counts().total.parameters == 2_000_000 + 2 * 320_800 + 2_010_000


def test_word2vec_puts_words_of_a_kind_together(rng: np.random.Generator) -> None:
    """Two groups of words that only stand among themselves."""
    fb.set_random_seed(1)
    text = np.concatenate([rng.integers(0, 5, 400), rng.integers(5, 10, 400)])
    words = fb.placeholder(fb.int32, [None])
    contexts = fb.placeholder(fb.int64, [None, 1])
    model = word2vec.skip_gram(words, contexts, vocabulary=10, width=8, samples=4)
    step = fb.train.GradientDescentOptimizer(0.3).minimize(model.loss)
    near = word2vec.nearest(model.embeddings, [0, 7], 4)
    with fb.Session() as sess:
        for chosen, around in itertools.islice(word2vec.batches(text, 64, 2), 600):
            sess.run(step, {words: chosen, contexts: around})
        found = sess.run(near)
    assert (found[0] < 5).mean() > 0.7
    assert (found[1] >= 5).mean() > 0.7


def test_a_step_of_word2vec_is_sparse() -> None:
    words = fb.placeholder(fb.int32, [None])
    contexts = fb.placeholder(fb.int64, [None, 1])
    model = word2vec.skip_gram(words, contexts, vocabulary=1000)
    assert fb.parameter_counts().total.parameters == 257 * 1000
    found = fb.gradients(model.loss, fb.get_default_graph().variables())
    assert all(isinstance(g, fb.IndexedSlices) for g in found)


def test_the_transformer_of_base_size_has_its_parameters() -> None:
    tokens = fb.placeholder(fb.int32, [None, 3])
    transformer.translate(tokens, tokens, 37_000, transformer.BASE)
    # Table 3 of the paper says 65 million; it does not say which biases it counts.
    assert fb.parameter_counts().total.parameters == pytest.approx(65e6, rel=0.04)


def test_a_small_transformer_learns_to_copy(rng: np.random.Generator) -> None:
    fb.set_random_seed(1)
    source = fb.placeholder(fb.int32, [None, 4])
    target = fb.placeholder(fb.int32, [None, 4])
    logits = transformer.translate(source, target, 12, transformer.SMALL, rate=0.0)
    losses = fb.nn.sparse_softmax_cross_entropy_with_logits(labels=source, logits=logits)
    loss = fb.reduce_mean(losses)
    step = fb.train.AdamOptimizer(3e-3).minimize(loss)
    with fb.Session() as sess:
        for _ in range(110):
            data = rng.integers(1, 12, (32, 4))
            shifted = np.concatenate([np.zeros((32, 1)), data[:, :-1]], 1).astype(int)
            found, _ = sess.run([loss, step], {source: data, target: shifted})
    assert found < 0.5


def test_a_transformer_sees_nothing_that_comes_later(rng: np.random.Generator) -> None:
    tokens = fb.placeholder(fb.int32, [None, 6])
    logits = transformer.language_model(tokens, 20)
    data = rng.integers(0, 20, (2, 6))
    changed = data.copy()
    changed[:, 4:] = (changed[:, 4:] + 1) % 20
    with fb.Session() as sess:
        a, b = sess.run(logits, {tokens: data}), sess.run(logits, {tokens: changed})
    np.testing.assert_allclose(a[:, :4], b[:, :4], rtol=1e-5, atol=1e-6)
    assert not np.allclose(a[:, 4:], b[:, 4:])
