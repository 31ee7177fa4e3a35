"""Whole steps on a GPU: what goes over and back, memory, training, sessions beside each other."""

from __future__ import annotations

import gc
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.gpu import Gpu
from tests.gpu.need import skip_without_gpu

skip_without_gpu()

# Up to what is larger than the blocks of pinned memory.
SIZES = [0, 1, 1000, 1 << 20, (5 << 20) + 3]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float16, np.float32, np.complex128])
def test_arrays_go_over_and_back(size: int, dtype: type) -> None:
    device = Gpu()
    value = (np.arange(size) % 7).astype(dtype)
    for _ in range(3):
        array = device.put(value)
        shown = device.fetch_all([array, array, value])
        for found in shown:
            np.testing.assert_array_equal(found, value)


def test_what_is_fed_may_change_as_soon_as_the_step_has_ended() -> None:
    with fb.device("gpu:0"):
        x = fb.placeholder(fb.float32, [1000, 1000])
        total = fb.Variable(np.float32(0))
        add = fb.assign_add(total, fb.reduce_sum(fb.matmul(x, x)))
    value = np.zeros((1000, 1000), np.float32)
    with fb.Session(devices=["gpu:0"]) as sess:
        sess.run(total)
        for turn in range(50):
            value[:] = turn % 3
            sess.run(add.op, {x: value})  # Nothing is fetched: nobody waits.
            value[:] = -1
        wanted = sum((turn % 3) ** 2 for turn in range(50)) * 1000.0**3
        np.testing.assert_allclose(sess.run(total), wanted, rtol=1e-5)


def test_memory_is_freed() -> None:
    device = Gpu()
    gc.collect()
    before = device.used
    with fb.device("gpu:0"):
        x = fb.placeholder(fb.float32, [1 << 20])
        weights = fb.Variable(np.ones(1 << 20, np.float32))
        y = fb.exp(x * weights)
    with fb.Session(devices=[device]) as sess:
        for _ in range(5):
            sess.run(y, {x: np.zeros(1 << 20, np.float32)})
        gc.collect()
        assert device.used - before < 3 * (4 << 20)
    del sess
    gc.collect()
    assert device.used <= before


def test_what_does_not_fit_is_an_error_and_the_session_goes_on() -> None:
    with fb.device("gpu:0"):
        n = fb.placeholder(fb.int32, [])
        y = fb.reduce_sum(fb.fill([n, 1 << 20], 1.0))
    with fb.Session(devices=["gpu:0"]) as sess:
        assert sess.run(y, {n: 1}) == 1 << 20
        with pytest.raises(fb.errors.ResourceExhaustedError):
            sess.run(y, {n: 1 << 20})
        assert sess.run(y, {n: 1}) == 1 << 20


def trained(device: str) -> tuple[list[float], np.ndarray]:
    """The losses of a small network, and its first weights in the end."""
    rng = np.random.default_rng(0)
    images, labels = rng.normal(size=(512, 64)), rng.integers(0, 10, 512)
    with fb.Graph().as_default(), fb.device(device):
        fb.set_random_seed(1)
        x = fb.placeholder(fb.float32, [None, 64])
        y = fb.placeholder(fb.int32, [None])
        hidden = fb.layers.dense(x, 128, activation=fb.nn.relu)
        logits = fb.layers.dense(hidden, 10)
        loss = fb.losses.sparse_softmax_cross_entropy(y, logits)
        train = fb.train.AdamOptimizer(0.01).minimize(loss)
        first = fb.get_default_graph().variables(trainable=True)[0]
        with fb.Session(devices=["cpu:0", "gpu:0"]) as sess:
            batches = [slice(i, i + 64) for i in range(0, 512, 64)] * 5
            losses = [sess.run([loss, train], {x: images[b], y: labels[b]})[0] for b in batches]
            return losses, sess.run(first)


def test_a_network_learns_there_as_on_the_cpu() -> None:
    there, weights = trained("gpu:0")
    here, wanted = trained("cpu:0")
    assert there[-1] < there[0] / 2
    np.testing.assert_allclose(there, here, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(weights, wanted, atol=1e-2)


def test_sessions_beside_each_other_do_not_disturb_each_other() -> None:
    def steps(number: int) -> None:
        with fb.Graph().as_default():
            with fb.device("gpu:0"):
                x = fb.placeholder(fb.float32, [256, 256])
                y = fb.matmul(x, x) + float(number)
            with fb.Session(devices=["gpu:0"]) as sess:
                for turn in range(100):
                    found = sess.run(y, {x: np.full((256, 256), turn % 5, np.float32)})
                    np.testing.assert_array_equal(found, (turn % 5) ** 2 * 256 + number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(steps, range(8)))


def test_threads_share_a_session() -> None:
    with fb.device("gpu:0"):
        x = fb.placeholder(fb.float32, [])
        total = fb.Variable(np.float32(0))
        add = fb.assign_add(total, x)
    with fb.Session(devices=["gpu:0"]) as sess, ThreadPoolExecutor(4) as pool:
        sess.run(total)
        list(pool.map(lambda turn: sess.run(add.op, {x: 1.0}), range(400)))
        assert sess.run(total) == 400


def test_a_trace_tells_when_kernels_run_there() -> None:
    with fb.device("gpu:0"):
        x = fb.placeholder(fb.float32, [2048, 2048])
        y = fb.reduce_sum(fb.tanh(x @ x) @ x)
    with fb.Session(devices=["gpu:0"]) as sess:
        feeds = {x: np.ones((2048, 2048), np.float32)}
        sess.run(y, feeds)
        with sess.trace() as trace:
            for _ in range(5):
                sess.run(y.op, feeds)
    there = [call for call in trace.calls if call.device.endswith("gpu:0")]
    assert len(there) == 20
    for before, after in itertools.pairwise(there):
        assert before.start <= before.end <= after.start
    for call in there:
        assert trace.steps[call.step].start <= call.start <= call.end <= trace.steps[call.step].end
