"""Models that are built several times on one set of variables, trained for some steps."""

from typing import Any

import numpy as np

import flowbook as fb

RNG = np.random.default_rng(2015)


def dense(units: int, activation: Any = None) -> Any:
    return lambda x, name: fb.layers.dense(x, units, activation=activation, name=name)


def test_a_gan_trains_two_halves_in_turn() -> None:
    fb.set_random_seed(3)

    def generate(z: Any) -> Any:
        return dense(2)(dense(8, fb.nn.relu)(z, "hidden"), "out")

    def judge(x: Any) -> Any:
        return dense(1)(dense(16, fb.nn.relu)(x, "hidden"), "out")

    generator, critic = fb.template(generate, "generator"), fb.template(judge, "critic")
    real = fb.placeholder(fb.float32, [None, 2])
    made = generator(fb.random_normal([64, 4]))
    of_real, of_made = critic(real), critic(made)

    def entropy(logits: Any, label: float) -> Any:
        labels = label * fb.ones_like(logits)
        return fb.reduce_mean(fb.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))

    judging = entropy(of_real, 1.0) + entropy(of_made, 0.0)
    adam = fb.train.AdamOptimizer(0.02, beta1=0.5)
    train_critic = adam.minimize(judging, var_list=critic.variables())
    train_generator = adam.minimize(entropy(of_made, 1.0), var_list=generator.variables())
    points = RNG.normal([2.0, -1.0], 0.1, [64, 2])
    with fb.Session() as sess:
        assert len(fb.get_default_graph().variables(trainable=True)) == 8
        far = np.abs(sess.run(made).mean(0) - [2.0, -1.0]).max()
        for _ in range(150):
            sess.run(train_critic, {real: points})
            sess.run(train_generator)
        near = np.abs(sess.run(made).mean(0) - [2.0, -1.0]).max()
    assert near < far / 2


def test_a_vae_decodes_what_it_drew_and_what_it_is_given() -> None:
    fb.set_random_seed(3)
    x = fb.placeholder(fb.float32, [None, 6])
    mean, log_variance = fb.split(dense(4)(x, "encoder"), 2, axis=1)
    noise = fb.random_normal(fb.shape(mean))
    decoder = fb.template(lambda z: dense(6)(dense(16, fb.tanh)(z, "hidden"), "out"), "decoder")
    decoded = decoder(mean + noise * fb.exp(0.5 * log_variance))
    z = fb.placeholder(fb.float32, [None, 2])
    given = decoder(z)
    error = fb.reduce_sum(fb.square(decoded - x), axis=1)
    kl = -0.5 * fb.reduce_sum(1.0 + log_variance - fb.square(mean) - fb.exp(log_variance), axis=1)
    loss = fb.reduce_mean(error + 0.1 * kl)
    train = fb.train.AdamOptimizer(0.02).minimize(loss)
    data = RNG.normal(size=[64, 2]) @ RNG.normal(size=[2, 6])
    with fb.Session() as sess:
        before = sess.run(loss, {x: data})
        for _ in range(150):
            sess.run(train, {x: data})
        assert sess.run(loss, {x: data}) < before / 3
        codes = sess.run(mean, {x: data})
        error = np.mean((sess.run(given, {z: codes}) - data) ** 2)
    assert error < np.mean(data**2) / 3


def test_towers_on_two_devices_train_as_one() -> None:
    def tower(x: Any, y: Any) -> Any:
        return fb.reduce_mean(fb.square(dense(1)(x, "out") - y))

    x, y = fb.placeholder(fb.float32, [64, 3]), fb.placeholder(fb.float32, [64, 1])
    loss_of = fb.template(tower, "tower")
    losses = []
    for i, (part, target) in enumerate(zip(fb.split(x, 2), fb.split(y, 2), strict=True)):
        with fb.device(f"/device:cpu:{i}"):
            losses.append(loss_of(part, target))
    loss = fb.add_n(losses) / 2.0
    train = fb.train.GradientDescentOptimizer(0.1).minimize(loss)
    assert [v.device for v in loss_of.variables()] == ["/device:cpu:0"] * 2
    data = RNG.normal(size=[64, 3])
    feeds = {x: data, y: data @ [[1.0], [2.0], [3.0]]}
    with fb.Session(devices=["cpu:0", "cpu:1"]) as sess:
        before = sess.run(loss, feeds)
        for _ in range(100):
            sess.run(train, feeds)
        assert sess.run(loss, feeds) < before / 100


def test_workers_act_on_one_policy_and_train_it() -> None:
    """As A3C does: each worker has its own part of the graph, on the variables of all."""
    fb.set_random_seed(3)
    trunk = fb.template(lambda x: dense(8, fb.nn.relu)(x, "hidden"), "trunk")
    policy = fb.template(lambda x: dense(2)(trunk(x), "logits"), "policy")
    value = fb.template(lambda x: dense(1)(trunk(x), "value"), "value")
    optimizer = fb.train.GradientDescentOptimizer(0.02)
    workers = []
    for i in range(3):
        with fb.name_scope(f"worker_{i}"):
            state = fb.placeholder(fb.float32, [None, 4])
            reward = fb.placeholder(fb.float32, [None])
            acting = fb.nn.softmax(policy(state))
            worth = fb.squeeze(value(state), axis=[1])
            advantage = fb.stop_gradient(reward - worth)
            loss = fb.reduce_mean(
                fb.square(reward - worth) - advantage * fb.log(acting[:, 0] + 1e-6)
            )
            workers.append((state, reward, acting, optimizer.minimize(loss)))
    assert len(fb.get_default_graph().variables(trainable=True)) == 6
    states = RNG.normal(size=[16, 4])
    with fb.Session() as sess:
        state, _, acting, _ = workers[0]
        before = sess.run(acting, {state: states})[:, 0].mean()
        for step in range(60):
            state, reward, _, train = workers[step % 3]
            sess.run(train, {state: states, reward: np.full(16, 5.0)})
        state, _, acting, _ = workers[2]
        assert sess.run(acting, {state: states})[:, 0].mean() > before
