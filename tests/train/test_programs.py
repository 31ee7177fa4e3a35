"""Programs as they are written for a graph: several parts of the interface together, end to end."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb


@pytest.fixture(autouse=True)
def seeded() -> None:
    fb.set_random_seed(2015)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(2015)


def test_two_networks_train_against_each_other(rng: np.random.Generator) -> None:
    def cross_entropy(logits: fb.Tensor, label: float) -> fb.Tensor:
        labels = fb.fill(fb.shape(logits), label)
        losses = fb.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
        return fb.reduce_mean(losses)

    noise = fb.placeholder(fb.float32, [None, 4])
    real = fb.placeholder(fb.float32, [None, 1])
    with fb.name_scope("maker"):
        made = fb.layers.dense(fb.layers.dense(noise, 16, fb.nn.relu), 1)
    with fb.name_scope("judge"):
        # Both in one batch: the judge's variables are made once.
        hidden = fb.layers.dense(fb.concat([real, made], 0), 16, fb.nn.relu)
        logits = fb.layers.dense(hidden, 1)
    of_real, of_made = logits[: fb.shape(real)[0]], logits[fb.shape(real)[0] :]
    graph = fb.get_default_graph()
    judges, makers = (graph.variables(True, scope) for scope in ("judge", "maker"))
    judge = fb.train.AdamOptimizer(0.005, beta1=0.5).minimize(
        cross_entropy(of_real, 1.0) + cross_entropy(of_made, 0.0), var_list=judges
    )
    make = fb.train.AdamOptimizer(0.005, beta1=0.5).minimize(
        cross_entropy(of_made, 1.0), var_list=makers
    )
    assert len(judges) == len(makers) == 4
    with fb.Session() as sess:
        for _ in range(600):
            feeds = {real: 3 + 0.5 * rng.standard_normal((64, 1)), noise: rng.random((64, 4))}
            before = sess.run(judges)
            sess.run(make, feeds)
            np.testing.assert_array_equal(sess.run(judges)[0], before[0])
            sess.run(judge, feeds)
        values = sess.run(made, {noise: rng.random((500, 4))})
    assert abs(values.mean() - 3) < 0.7


def test_gradients_of_several_batches_make_one_step(rng: np.random.Generator) -> None:
    x, y = fb.placeholder(fb.float32, [None, 3]), fb.placeholder(fb.float32, [None])
    w, alone = fb.Variable(fb.zeros([3])), fb.Variable(fb.zeros([3]))

    def loss(weights: Any) -> fb.Tensor:
        return fb.reduce_sum(fb.square(fb.matvec(x, weights) - y))

    optimizer = fb.train.MomentumOptimizer(0.01, 0.9)
    [(gradient, _)] = optimizer.compute_gradients(loss(w), [w])
    total = fb.Variable(fb.zeros_like(w), trainable=False)
    forget, add = fb.assign(total, fb.zeros_like(total)), fb.assign_add(total, gradient)
    step = optimizer.apply_gradients([(total, w)])
    whole = fb.train.MomentumOptimizer(0.01, 0.9).minimize(loss(alone), var_list=[alone])
    inputs, labels = rng.standard_normal((12, 3)), rng.standard_normal(12)
    with fb.Session() as sess:
        for _ in range(5):
            sess.run(forget)
            for rows in (slice(0, 4), slice(4, 8), slice(8, 12)):
                sess.run(add, {x: inputs[rows], y: labels[rows]})
            sess.run(step)
            sess.run(whole, {x: inputs, y: labels})
        np.testing.assert_allclose(*sess.run([w, alone]), rtol=1e-4)


def test_a_target_network_follows_by_copies(rng: np.random.Generator) -> None:
    def values(states: fb.Tensor, scope: str) -> fb.Tensor:
        with fb.name_scope(scope):
            return fb.layers.dense(fb.layers.dense(states, 16, fb.nn.relu), 2)

    state, following = (fb.placeholder(fb.float32, [None, 3]) for _ in range(2))
    reward, action = fb.placeholder(fb.float32, [None]), fb.placeholder(fb.int32, [None])
    best = fb.reduce_max(values(following, "target"), 1)
    goal = fb.stop_gradient(reward + 0.5 * best)
    chosen = fb.gather_nd(values(state, "online"), fb.stack([fb.range(fb.size(action)), action], 1))
    loss = fb.reduce_mean(fb.squared_difference(goal, chosen))
    graph = fb.get_default_graph()
    online, target = (graph.variables(True, scope) for scope in ("online", "target"))
    train = fb.train.RMSPropOptimizer(0.01).minimize(loss, var_list=online)
    copy = fb.group(*[fb.assign(a, b) for a, b in zip(target, online, strict=True)])
    losses = []
    with fb.Session() as sess:
        for step in range(300):
            if step % 20 == 0:
                sess.run(copy)
                np.testing.assert_array_equal(sess.run(target[0]), sess.run(online[0]))
            states, actions = rng.standard_normal((32, 3)), rng.integers(0, 2, 32)
            feeds = {
                state: states,
                following: rng.standard_normal((32, 3)),
                action: actions,
                reward: actions == (states[:, 0] > 0),
            }
            losses.append(sess.run([loss, train], feeds)[0])
    assert np.mean(losses[-20:]) < 0.6 * np.mean(losses[:20])


def test_an_image_takes_on_a_style(rng: np.random.Generator) -> None:
    filters = fb.constant(0.3 * rng.standard_normal((3, 3, 3, 8)), fb.float32)
    content, style = rng.random((1, 16, 16, 3)), rng.random((1, 16, 16, 3)) > 0.5
    image = fb.Variable(fb.random_uniform([1, 16, 16, 3]), name="image")

    def features(images: Any) -> fb.Tensor:
        return fb.nn.relu(fb.nn.conv2d(images, filters, [1, 1, 1, 1], "SAME"))

    def gram(found: fb.Tensor) -> fb.Tensor:
        rows = fb.reshape(found, [-1, 8])
        return fb.matmul(rows, rows, transpose_a=True) / fb.cast(fb.shape(rows)[0], fb.float32)

    aim = features(style.astype(np.float32))
    loss = (
        fb.nn.l2_loss(features(image) - features(content.astype(np.float32))) / 1000
        + 10 * fb.reduce_mean(fb.squared_difference(gram(features(image)), gram(aim)))
        + 0.1 * fb.reduce_mean(fb.square(image[:, 1:] - image[:, :-1]))
    )
    train = fb.train.AdamOptimizer(0.05).minimize(loss, var_list=[image])
    with fb.control_dependencies([train]):
        keep = fb.assign(image, fb.clip_by_value(image, 0.0, 1.0))
    with fb.Session() as sess:
        first = sess.run(loss)
        for _ in range(60):
            pixels = sess.run(keep)
            assert pixels.min() >= 0.0
            assert pixels.max() <= 1.0
        assert sess.run(loss) < 0.5 * first


def test_batch_normalisation_by_hand_keeps_averages(rng: np.random.Generator) -> None:
    x, y = fb.placeholder(fb.float32, [None, 8]), fb.placeholder(fb.float32, [None, 1])
    product = x @ fb.Variable(fb.random_normal([8, 16], stddev=0.3))
    beta, gamma = fb.Variable(fb.zeros([16])), fb.Variable(fb.ones([16]))
    kept = [fb.Variable(start([16]), trainable=False) for start in (fb.zeros, fb.ones)]
    found = fb.nn.moments(product, [0])
    moved = [fb.assign(a, 0.9 * a + 0.1 * b) for a, b in zip(kept, found, strict=True)]
    with fb.control_dependencies(moved):
        training = fb.nn.batch_normalization(product, *found, beta, gamma, 1e-3)
    using = fb.nn.batch_normalization(product, *kept, beta, gamma, 1e-3)
    kernel = fb.Variable(fb.random_normal([16, 1], stddev=0.3))

    def loss(normalised: fb.Tensor) -> fb.Tensor:
        return fb.losses.mean_squared_error(y, fb.nn.relu(normalised) @ kernel)

    train = fb.train.MomentumOptimizer(0.05, 0.9).minimize(loss(training))
    while_used = loss(using)
    inputs = 3 * rng.standard_normal((256, 8)) + 1
    feeds = {x: inputs, y: np.abs(inputs[:, :1])}
    with fb.Session() as sess:
        first = sess.run(while_used, feeds)
        for _ in range(200):
            sess.run(train, feeds)
        means, batch_means = sess.run([kept[0], found[0]], feeds)
        assert sess.run(while_used, feeds) < 0.1 * first
    np.testing.assert_allclose(means, batch_means, atol=0.05)


def test_a_variational_autoencoder_draws_what_it_learns_from(rng: np.random.Generator) -> None:
    shapes = {"encode": [12, 16], "mean": [16, 2], "width": [16, 2], "decode": [2, 12]}
    weights = {
        name: fb.Variable(fb.random_normal(shape, stddev=1.0 / fb.sqrt(shape[0] / 2.0)))
        for name, shape in shapes.items()
    }
    x = fb.placeholder(fb.float32, [None, 12])
    hidden = fb.tanh(x @ weights["encode"])
    mean, width = hidden @ weights["mean"], hidden @ weights["width"]
    code = mean + fb.exp(width / 2) * fb.random_normal(fb.shape(width))
    logits = code @ weights["decode"]
    missed = fb.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits)
    divergence = -0.5 * fb.reduce_sum(1 + width - fb.square(mean) - fb.exp(width), 1)
    loss = fb.reduce_mean(fb.reduce_sum(missed, 1) + divergence)
    train = fb.train.AdamOptimizer(0.01).minimize(loss)
    patterns = rng.integers(0, 2, (4, 12))
    with fb.Session() as sess:
        feeds = {x: patterns[rng.integers(0, 4, 64)]}
        first = sess.run(loss, feeds)
        for _ in range(400):
            sess.run(train, {x: patterns[rng.integers(0, 4, 64)]})
        # Draws of a step differ from those of the next.
        drawn = sess.run([loss, loss, code], feeds), sess.run([loss, loss, code], feeds)
        assert drawn[0][0] == drawn[0][1] != drawn[1][0]
        assert drawn[0][0] < 0.8 * first
        # The decoder alone, from codes that are fed.
        assert sess.run(fb.sigmoid(logits), {code: [[0.0, 1.0]]}).shape == (1, 12)
