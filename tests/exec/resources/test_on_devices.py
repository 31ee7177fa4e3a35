"""Variables in the memory of accelerators: the same values, which cross for nothing but a fetch."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.devices.simulated import Simulated
from flowbook.exec.resources.variable import VariableResource
from flowbook.graph.model.shape import Shape
from tests.exec.held import held

ROWS, WIDTH = 4, 2


@pytest.fixture
def device() -> Simulated:
    return Simulated()


@pytest.fixture
def sess(device: Simulated) -> Any:
    with fb.Session(devices=["cpu:0", device]) as sess:
        yield sess


def variable(device: Simulated, value: Any = (1.0, 2.0, 3.0)) -> VariableResource:
    array = np.asarray(value, np.float32)
    made = VariableResource("W", fb.float32, Shape(array.shape), device=device)
    made.put(array)
    return made


# What touches a variable, by its type: from the variable, indices of rows and rows of values.
USES: dict[str, Any] = {
    "Assign": lambda v, i, rows: fb.assign(v, fb.reduce_sum(rows) * fb.ones_like(v.value)),
    "AssignAdd": lambda v, i, rows: fb.assign_add(v, fb.reduce_sum(rows) * fb.ones_like(v.value)),
    "AssignSub": lambda v, i, rows: fb.assign_sub(v, fb.reduce_sum(rows) * fb.ones_like(v.value)),
    "ScatterAdd": fb.scatter_add,
    "ScatterSub": fb.scatter_sub,
    "ScatterMul": fb.scatter_mul,
    "ScatterDiv": fb.scatter_div,
    "ScatterMax": fb.scatter_max,
    "ScatterMin": fb.scatter_min,
    "ScatterUpdate": fb.scatter_update,
    "ScatterNdAdd": lambda v, i, rows: fb.scatter_nd_add(v, i[:, None], rows),
    "ScatterNdSub": lambda v, i, rows: fb.scatter_nd_sub(
        v, fb.stack([i, i % WIDTH], 1), rows[:, 0]
    ),
    "ScatterNdUpdate": lambda v, i, rows: fb.scatter_nd_update(v, i[:, None], rows),
    "StridedSliceAssign": lambda v, i, rows: fb.assign(v[1:], rows[0]),
    "VariableGather": lambda v, i, rows: fb.gather(v, i),
    "ReadVariable": lambda v, i, rows: v * 2.0,
    "IsInitialized": lambda v, i, rows: fb.is_variable_initialized(v),
}

steps = st.lists(
    st.tuples(
        st.sampled_from(sorted(USES)),
        st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=6),
        st.integers(1, 1000),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_uses_of_variables_mean_the_same_bits_on_every_device(steps: Any) -> None:
    with fb.Graph().as_default():
        where = {}
        indices = fb.placeholder(fb.int32, [None])
        values = fb.placeholder(fb.float32, [None, WIDTH])
        for name in ("cpu:0", "simulated:0"):
            with fb.device(name):
                first = np.arange(1.0, 1.0 + ROWS * WIDTH, dtype=np.float32)
                v = fb.Variable(first.reshape(ROWS, WIDTH))
                where[name] = v, {type_: use(v, indices, values) for type_, use in USES.items()}
        with fb.Session(devices=["cpu:0", Simulated()]) as sess:
            for type_, rows, seed in steps:
                drawn = np.random.default_rng(seed).uniform(0.5, 2.0, (len(rows), WIDTH))
                feeds = {indices: rows, values: drawn.astype(np.float32)}
                here, there = [sess.run([uses[type_], v], feeds) for v, uses in where.values()]
                for one, other in zip(here, there, strict=True):
                    np.testing.assert_array_equal(one, other, strict=True)
            assert "simulated" in sess.explain(where["simulated:0"][0]).device(v.op)


HOLDS = {
    "view": lambda view: view,
    "slice": lambda view: view[1:],
    "reshaped": lambda view: view.reshape(3, 1),
    "view of a view": lambda view: view[:2][:1],
}


@pytest.mark.parametrize("hold", HOLDS.values(), ids=HOLDS)
def test_what_nobody_holds_is_written_in_place(hold: Any, device: Simulated) -> None:
    W = variable(device)
    one = device.own(np.ones(3, np.float32))
    buffer, used = id(W._buffer), device.used
    W.update(device.xp.add, one)
    W.assign(one)
    W.scatter(device.xp.add, device.own(np.array([0, 0])), device.own(np.ones(2, np.float32)))
    assert (id(W._buffer), device.used) == (buffer, used)
    kept = hold(W.read())
    before = device.fetch(kept)
    W.update(device.xp.add, one)
    assert id(W._buffer) != buffer
    np.testing.assert_array_equal(device.fetch(kept), before)
    np.testing.assert_array_equal(W.fetch(), [4, 2, 2])
    del kept
    W.update(device.xp.add, one)
    assert device.used == used


@pytest.mark.parametrize("type_", ["ScatterAdd", "ScatterNdAdd", "VariableGather"])
def test_an_index_outside_writes_nothing(type_: str, sess: fb.Session) -> None:
    with fb.device("simulated:0"):
        v = fb.Variable(np.zeros((ROWS, WIDTH), np.float32), name="v")
    indices = fb.placeholder(fb.int32, [2])
    wrong = USES[type_](v, indices, fb.ones([2, WIDTH]))
    with pytest.raises(fb.errors.InvalidIndexError, match=rf"{ROWS}"):
        sess.run(wrong, {indices: [0, ROWS]})
    assert not sess.run(v).any()


def test_a_training_step_moves_no_weights(sess: fb.Session, device: Simulated) -> None:
    x = fb.placeholder(fb.float32, [8, 16], name="x")
    with fb.device("simulated:0"):
        w = fb.Variable(fb.random_normal([16, 4], seed=3), name="w")
        loss = fb.reduce_mean(fb.square(x @ w), name="loss")
    train = fb.train.AdamOptimizer(0.1).minimize(loss)
    given = np.random.default_rng(1).normal(size=(8, 16)).astype(np.float32)
    feeds = {x: given}
    with fb.Session(soft_placement=True) as one:
        wanted = [one.run([loss, train], feeds)[0] for _ in range(4)]
    plan = sess.explain(train, feeds)
    assert {e.value: e.bytes for e in plan.transfers if e.bytes > 4} == {"x:0": given.nbytes}
    losses = []
    for step in range(4):
        copied, used = device.copied_in, device.used
        losses.append(sess.run([loss, train], feeds)[0])
        if step > 1:
            # The moments' powers are asked for nowhere, and cross as scalars.
            assert given.nbytes <= device.copied_in - copied <= given.nbytes + 32
            assert device.used == used
    np.testing.assert_allclose(losses, wanted, rtol=1e-5)
    # The weights and two moments of them; the two powers are scalars.
    assert 3 * 16 * 4 * 4 <= device.used <= 3 * 16 * 4 * 4 + 64
    sess.close()
    assert device.used == 0


def test_a_variable_lives_where_its_users_are_cheapest(device: Simulated) -> None:
    x = fb.placeholder(fb.float32, [2048, 2048], name="x")
    big = fb.Variable(fb.zeros([2048, 2048]), name="big")
    small = fb.Variable(0.0, name="small")
    _ = fb.reduce_sum(fb.square(x @ big @ big), name="loss")
    for soft in (False, True):
        with fb.Session(devices=["cpu:0", device], soft_placement=soft) as sess:
            # The step that happens to be the first says nothing of what comes later.
            plan = sess.explain(big.initializer)
            assert "device:simulated:0 after" in plan.reason(big.op)
            sess.run(fb.global_variables_initializer())
            assert held(sess, big).device is device
            assert held(sess, small).device.kind == "cpu"
            assert "lives there" in sess.explain(big).reason(big.op)


def test_where_it_lives_does_not_depend_on_what_initialises_it(device: Simulated) -> None:
    drawn = fb.random_normal([1024, 1024])
    for name, initial in (("plain", fb.zeros([1024, 1024])), ("costly", drawn @ drawn @ drawn)):
        v = fb.Variable(initial, name=name)
        _ = fb.random_shuffle(fb.exp(v))
        with fb.Session(devices=["cpu:0", device]) as sess:
            assert sess.explain(v.initializer).device(v.op).endswith("simulated:0")


def test_a_user_is_not_taken_for_an_initializer_by_an_attribute(device: Simulated) -> None:
    product = fb.OpDef(
        "ProductOfUsers",
        "a: float32, b: float32 -> y: float32",
        attributes={"is_initializer": True},
        infer=lambda a, b, **_: a.shape,
        kernel=lambda xp, a, b: xp.matmul(a, b),
        cost=lambda op: 2 * 2048**3,
    )
    x = fb.placeholder(fb.float32, [2048, 2048], name="x")
    big = fb.Variable(fb.zeros([2048, 2048]), name="big")
    _ = fb.reduce_sum(fb.square(product(product(x, big), big)), name="loss")
    with fb.Session(devices=["cpu:0", device]) as sess:
        assert sess.explain(big.initializer).device(big.op).endswith("simulated:0")


def test_what_cannot_live_there_stays_and_says_why(sess: fb.Session) -> None:
    names = fb.Variable(["a", "b"], name="names")
    count = fb.Variable(0, name="count")
    following = fb.count_up_to(count, 5, name="following")
    shuffled = fb.random_shuffle(fb.range(3), name="shuffled")
    for tensor, why in (
        (names.value, "device:simulated:0 holds no string, which 'names"),
        (following, "device:simulated:0 has no kernel for 'following'"),
        (shuffled, "device:simulated:0 has no kernel for 'shuffled'"),
    ):
        for _ in range(2):
            plan = sess.explain(tensor)
            assert plan.device(tensor).endswith("cpu:0")
            assert why in plan.reason(tensor)
            sess.run(tensor)
    with fb.device("simulated:0"):
        there = fb.Variable(["c"], name="there")
    with pytest.raises(fb.errors.InvalidArgumentError, match="holds no string, which 'there'"):
        sess.run(there)


def test_checkpoints_go_through_the_host(
    sess: fb.Session, device: Simulated, tmp_path: Path
) -> None:
    with fb.device("simulated:0"):
        a = fb.Variable([1.0, 2.0], name="a")
    b = fb.Variable(3.0, name="b")
    change = fb.group(fb.assign_add(a, [1.0, 1.0]), fb.assign_add(b, 1.0))
    sess.run(change)
    saver = fb.train.Saver()
    path = saver.save(sess, tmp_path / "model")
    assert len(list(Path(path).glob("*.safetensors"))) == 2
    sess.run(change)
    saver.restore(sess, path)
    np.testing.assert_array_equal(sess.run(a), [2.0, 3.0])
    assert held(sess, a).device is device
    # What is restored before anything ran goes where it will live.
    with fb.Session(devices=["cpu:0", device], checkpoint=path) as other:
        np.testing.assert_array_equal(other.run(fb.assign_add(a, [1.0, 1.0])), [3.0, 4.0])
        assert held(other, a).device is device
        assert other.run(b) == 4.0
    with fb.Session(checkpoint=path, soft_placement=True) as on_host:
        np.testing.assert_array_equal(on_host.run(a), [2.0, 3.0])
        assert on_host.take_values(sess) == ["a", "b"]
    with fb.Session(devices=["cpu:0", device]) as taking:
        taking.take_values(sess)
        np.testing.assert_array_equal(taking.run(a), [2.0, 3.0])
        taking.reset()
        np.testing.assert_array_equal(taking.run(a), [1.0, 2.0])


def test_feeding_peeking_and_guarding(sess: fb.Session, device: Simulated) -> None:
    with fb.device("simulated:0"):
        w = fb.Variable([1.0, 4.0], name="w")
        y = fb.log(w, name="y")
        change = fb.assign_sub(w, [1.0, 1.0])
    np.testing.assert_array_equal(sess.run(w * 1.0, {w: [7.0, 8.0]}), [7.0, 8.0])
    np.testing.assert_array_equal(sess.run(w), [1.0, 4.0])
    with sess.guard():
        np.testing.assert_allclose(sess.run(y), np.log([1.0, 4.0]), rtol=1e-6)
        sess.run(change)
        for _ in range(3):
            with pytest.raises(fb.errors.InvalidArgumentError, match="it gave 1 Inf") as caught:
                sess.run(y)
            assert caught.value.operation is y.op
    np.testing.assert_array_equal(sess.peek(w), [0.0, 3.0])
    copied = device.copied_in
    np.testing.assert_array_equal(sess.peek("w"), [0.0, 3.0])
    assert device.copied_in == copied


def test_what_containers_hold_stays_on_its_device(device: Simulated) -> None:
    with fb.container("shared"), fb.device("simulated:0"):
        w = fb.Variable([1.0, 2.0], name="w")
    more = fb.assign_add(w, [1.0, 1.0])
    with fb.Session(devices=["cpu:0", device]) as one:
        one.run(more)
    with fb.Session(devices=["cpu:0", device]) as two:
        np.testing.assert_array_equal(two.run(more), [3.0, 4.0])
    with (
        fb.Session(devices=["cpu:0", Simulated()]) as other,
        pytest.raises(fb.errors.FailedPreconditionError, match="container 'shared' holds 'w' on"),
    ):
        other.run(more)
    fb.reset_container("shared")
    assert device.used == 0
    # By its name it is one device for all sessions.
    with fb.Session(devices=["simulated:3"]) as one, fb.Session(devices=["simulated:3"]) as two:
        first, same = (next(iter(s._master.placer.devices.values())) for s in (one, two))
        assert first is same


def test_an_error_lists_who_holds_the_memory(tmp_path: Path) -> None:
    narrow = Simulated(memory_limit=3_000_000)
    x = fb.placeholder(fb.float32, [None, 500], name="x")
    with fb.device("simulated:0"):
        w = fb.Variable(fb.ones([500, 500]), name="w")
        hidden = fb.exp(x, name="hidden")
        y = fb.reduce_sum(fb.matmul(hidden, w, name="product") * hidden, name="y")
    with fb.Session(devices=[narrow]) as sess:
        assert sess.run(y, {x: np.zeros((2, 500))}) == 500_000
        used = narrow.used
        gc.disable()
        try:
            for _ in range(3):
                with pytest.raises(fb.errors.ResourceExhaustedError) as caught:
                    sess.run(y, {x: np.zeros((500, 500))})
                text = str(caught.value)
                assert "1.00 MB: variable 'w' (test_on_devices.py, line" in text
                assert "1.00 MB: what 'hidden' gave (test_on_devices.py, line" in text
                assert caught.value.operation.name == "product"
                # The traceback holds nothing of the step, though it is still here.
                assert narrow.used == used
        finally:
            gc.enable()
        assert sess.run(y, {x: np.zeros((2, 500))}) == 500_000
    assert narrow.used == 0


def test_an_interrupt_gives_back_what_the_step_had(sess: fb.Session, device: Simulated) -> None:
    is_wanted = []

    def interrupt(value: Any) -> Any:
        if is_wanted:
            raise KeyboardInterrupt
        return value

    x = fb.placeholder(fb.float32, [1000], name="x")
    with fb.device("simulated:0"):
        w = fb.Variable(np.ones(1000, np.float32), name="w")
        before = w * fb.exp(x)
    with fb.device("cpu:0"):
        passed = fb.py_func(interrupt, [before], fb.float32)
    with fb.device("simulated:0"):
        y = fb.reduce_sum(passed * before)
    given = np.zeros(1000, np.float32)
    for _ in range(2):
        assert sess.run(y, {x: given}) == 1000.0
    used = device.used
    is_wanted.append(True)
    gc.disable()
    try:
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                sess.run(y, {x: given})
            assert device.used == used
    finally:
        gc.enable()
    is_wanted.clear()
    assert sess.run(y, {x: given}) == 1000.0


def test_what_nothing_refers_to_any_more_is_given_back(sess: fb.Session, device: Simulated) -> None:
    def cell() -> None:
        with fb.device("simulated:0"):
            w = fb.Variable(np.ones(1000, np.float32), name="w")
        sess.run(fb.assign_add(w, np.ones(1000, np.float32)).op)

    graph = fb.Graph()
    with fb.Session(graph, devices=["cpu:0", device]) as other:
        with graph.as_default(), fb.device("simulated:0"):
            v = fb.Variable(np.ones(1000, np.float32), name="v")
        other.run(v)
        assert device.used >= 4000
    del v, graph, other
    gc.collect()
    assert device.used == 0
    cell()


def test_what_is_fed_has_to_fit_where_it_is_used() -> None:
    x = fb.placeholder(fb.float32, [1000, 1000], name="x")
    y = x @ x
    for limit, device in ((7_000_000, "cpu"), (9_000_000, "simulated")):
        with fb.Session(devices=["cpu:0", Simulated(memory_limit=limit)]) as sess:
            plan = sess.explain(y, {x: (1000, 1000)})
            assert plan.device(y) == f"/job:localhost/task:0/device:{device}:0"
            assert ("has no memory left for it" in plan.reason(y)) is (device == "cpu")
            sess.run(y, {x: np.ones((1000, 1000))})


def test_a_variable_may_take_half_of_the_memory_when_it_is_initialised() -> None:
    W = fb.Variable(np.ones((1000, 1000), np.float32), name="W")
    with fb.device("simulated:0"):
        y = W * 2.0
    device = Simulated(memory_limit=9_000_000)
    with fb.Session(devices=["cpu:0", device]) as sess:
        for _ in range(3):
            assert sess.run(y)[0, 0] == 2.0
        assert 8_000_000 <= device.peak <= 9_000_000
