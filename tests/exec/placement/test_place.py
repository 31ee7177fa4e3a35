"""Where operations run with one device, and why some cannot."""

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.cpu import Cpu
from flowbook.exec.devices.local_devices import local_devices
from flowbook.exec.devices.simulated import Simulated
from flowbook.exec.placement.place import place
from flowbook.exec.plan.pipeline import grow
from flowbook.exec.signature.signature import Signature
from flowbook.graph.rewrite.prune import prune
from flowbook.graph.rewrite.subgraph import CannotFollow


@pytest.fixture
def x():
    return fb.placeholder(fb.float32, [2], name="x")


def placed(x, *fetches, devices=None):
    return place(prune(list(fetches), [], [x]), devices or local_devices())


def test_without_requests_everything_runs_on_the_first_device(x):
    y = fb.exp(x)
    placement = placed(x, y)
    assert placement.device_of(y.op).name == "/job:localhost/task:0/device:cpu:0"
    assert placement.reason(y.op).startswith("nothing constrains it")


@pytest.mark.parametrize(
    "request_", ["/device:cpu:0", "/job:localhost", "/task:0", "/job:localhost/task:0/device:cpu:0"]
)
def test_requests_that_can_be_met(x, request_):
    with fb.device(request_):
        y = fb.exp(x)
    placement = placed(x, y)
    assert placement.device_of(y.op).kind == "cpu"
    assert f"asks for {y.op.device}" in placement.reason(y.op)
    with fb.Session() as sess:
        assert sess.run(y, {x: [0.0, 0.0]}).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("request_", ["/device:gpu:0", "/device:cpu:1", "/job:worker", "/task:3"])
def test_requests_that_cannot(x, request_):
    with fb.device(request_):
        y = fb.exp(x, name="y")
    with fb.Session() as sess:
        for _ in range(2):
            with pytest.raises(fb.errors.InvalidArgumentError) as caught:
                sess.run(y, {x: [0.0, 0.0]})
            text = str(caught.value)
            assert f"'y' asks for {request_}" in text
            assert "this admits none of the devices that there are" in text
            assert "/job:localhost/task:0/device:cpu:0" in text
            assert "test_place.py, line" in text
            assert caught.value.operation is y.op


def test_colocated_operations_stay_together(x):
    with fb.device("/device:cpu:0"):
        a = fb.exp(x, name="a")
    with fb.colocate_with(a):
        b = fb.negative(x, name="b")
    with fb.colocate_with(b):
        c = fb.negative(x, name="c")
    placement = placed(x, a, b, c)
    for tensor in (a, b, c):
        assert "'a' asks for /device:cpu:0" in placement.reason(tensor.op)
    d = fb.exp(x)
    with fb.colocate_with(d):
        e = fb.negative(x)
    assert placed(x, d, e).reason(e.op) == "colocated operations stay together"


def test_requests_that_contradict_each_other(x):
    with fb.device("/device:cpu:0"):
        a = fb.exp(x, name="a")
    with fb.colocate_with(a), fb.device("/device:gpu:0"):
        b = fb.negative(x, name="b")
    with pytest.raises(ValueError, match="colocated operations admit none") as caught:
        placed(x, a, b)
    lines = str(caught.value).splitlines()
    said = {line.strip().partition(" (")[0] for line in lines}
    assert "'a' asks for /device:cpu:0, has kernels for cpu, gpu, simulated" in said
    assert (
        "'b' asks for /device:gpu:0, is colocated with 'a', has kernels for cpu, gpu, simulated"
        in said
    )
    assert sum("test_place.py, line" in line for line in lines) >= 3


def test_operations_that_share_no_kind_of_device(x):
    op = fb.OpDef(
        "AloneOnSimulated",
        "x: float32 -> y: float32",
        kernel=lambda xp, x: xp.exp(x),
        kinds=("simulated",),
    )
    a = op(x, name="a")
    with fb.colocate_with(a):
        b = fb.random_shuffle(x, name="b")
    with pytest.raises(ValueError, match="has kernels for all operations that share one") as caught:
        placed(x, a, b, devices=[*local_devices(), Simulated()])
    text = str(caught.value)
    assert "device:cpu:0 has no kernel for 'a'" in text
    assert "device:simulated:0 has no kernel for 'b'" in text
    assert "'a' has kernels for simulated (" in text
    assert "'b' is colocated with 'a', has kernels for cpu (" in text


def test_an_error_lists_some_of_very_many_operations(x):
    with fb.device("/device:gpu:7"):
        a = fb.exp(x, name="a")
    with fb.colocate_with(a):
        others = [fb.exp(x) for _ in range(20)]
    with pytest.raises(ValueError, match="admit none") as caught:
        placed(x, a, *others)
    assert "and 9 more operations" in str(caught.value)


def test_a_kernel_for_other_kinds_alone(x):
    op = fb.OpDef(
        "OnlySimulated",
        "x: float32 -> y: float32",
        kernel=lambda xp, x: xp.exp(x),
        kinds=("simulated",),
    )
    y = op(x)
    with pytest.raises(ValueError, match="has no kernel for 'cpu', only for simulated") as caught:
        placed(x, y)
    assert caught.value.operation is y.op
    assert "fb.register_kernel one for 'cpu'" in str(caught.value)


def test_nothing_falls_back_to_a_kernel_that_is_wrong_there(x):
    devices = [*local_devices(), Simulated()]
    with fb.device("/device:simulated:0"):
        y = fb.exp(x)
        z = fb.random_shuffle(x)
    assert placed(x, y, devices=devices).device_of(y.op) is devices[1]
    with pytest.raises(ValueError, match="has no kernel for 'simulated', only for cpu") as caught:
        placed(x, z, devices=devices)
    assert caught.value.operation is z.op
    assert "run it elsewhere with fb.device" in str(caught.value)


def test_an_attribute_called_dtype_says_nothing_of_where_an_operation_can_run(x):
    op = fb.OpDef(
        "SpelledAs",
        "x: float32 -> y: float32",
        attributes={"dtype": fb.string},
        infer=lambda x, **_: x.shape,
        kernel=lambda xp, x: xp.exp(x),
    )
    with fb.device("/device:simulated:0"):
        y = op(x)
    with fb.Session(devices=["cpu:0", Simulated()]) as sess:
        np.testing.assert_allclose(sess.run(y, {x: [0.0, 1.0]}), [1.0, np.e], rtol=1e-6)


def test_what_holds_strings_is_where_there_can_be_strings():
    with fb.Session(devices=["cpu:0", Simulated()], soft_placement=True) as sess:
        with fb.device("/device:simulated:0"):
            names = fb.Variable(["a"], name="names")
            is_there = fb.is_variable_initialized(names)
        # It takes a handle, and gives a bool: only the variable that is asked about holds strings.
        plan = sess.explain(is_there)
        assert plan.device(is_there).endswith("cpu:0")
        assert sess.run(names).tolist() == [b"a"]


def test_an_operation_without_a_kernel(x):
    op = fb.OpDef("HasNoKernel", "x: float32 -> y: float32")
    y = op(x)
    with pytest.raises(ValueError, match="has no kernel for 'cpu'") as caught:
        placed(x, y)
    assert caught.value.operation is y.op


def small_and_large():
    small = Cpu(0)
    small.memory_limit = 1000
    return [small, Cpu(1)]


def test_a_variable_that_does_not_fit_goes_elsewhere(x):
    devices = small_and_large()
    v = fb.Variable(np.zeros(300, np.float32), name="v")
    w = fb.Variable(np.zeros(100, np.float32), name="w")
    placement = placed(x, v + 0.0, w + 0.0, devices=devices)
    assert placement.device_of(v.op) is devices[1]
    assert f"{devices[0].name} has no memory left for it" in placement.reason(v.op)
    assert "has no memory left" not in placement.reason(w.op)


def test_what_an_operation_computes_has_to_fit():
    devices = small_and_large()
    x = fb.placeholder(fb.float32, [100])
    y = fb.exp(x)
    z = fb.exp(fb.concat([y, y, y], 0))
    placement = placed(x, z, devices=devices)
    assert f"{devices[0].name} has no memory left for it" in placement.reason(z.op)
    assert "has no memory left" not in placement.reason(y.op)


def test_what_has_to_be_where_it_does_not_fit(x):
    devices = small_and_large()
    with fb.device("cpu:0"):
        v = fb.Variable(np.zeros(200, np.float32), name="v")
        w = fb.Variable(np.zeros(100, np.float32), name="w")
    with pytest.raises(fb.errors.ResourceExhaustedError) as caught:
        placed(x, v + 0.0, w + 0.0, devices=devices)
    text = str(caught.value)
    assert "cpu:0 has 1.00 kB; what has to be there takes 1.20 kB for variables" in text
    assert text.index("'v' takes 800 B (test_place.py, line") < text.index("'w' takes 400 B")
    assert caught.value.operation is v.op


def zeros(size, name):
    return fb.Variable(np.zeros(size, np.float32), name=name) + 0.0


def placed_after(first, build, devices):
    """Where things are placed by which a graph grows, and what was built for that."""
    base = grow(Signature((first,), (), ()), devices)
    built = build()
    return built, grow(Signature((first, built), (), ()), devices, base).prepared.placement


def test_what_does_not_fit_beside_what_was_placed_before_goes_elsewhere():
    devices = small_and_large()
    v, placement = placed_after(zeros(1, "u"), lambda: zeros(60, "v"), devices)
    assert placement.device_of(v.op) is devices[0]
    v, placement = placed_after(zeros(100, "w"), lambda: zeros(60, "v"), devices)
    assert placement.device_of(v.op) is devices[1]
    assert f"{devices[0].name} has no memory left for it" in placement.reason(v.op.inputs[0].op)


def test_what_is_new_takes_room_too():
    devices = small_and_large()
    both = lambda: fb.concat([zeros(120, "v"), zeros(120, "w")], 0)  # noqa: E731
    both, placement = placed_after(zeros(1, "u"), both, devices)
    assert {placement.device_of(y.op) for y in both.op.inputs[:2]} == {*devices}


def test_a_variable_goes_elsewhere_where_others_that_live_there_leave_no_room():
    rows = [fb.gather(fb.Variable(np.zeros(120, np.float32)), [0]) for _ in range(3)]
    with fb.Session(devices=small_and_large()) as sess:
        for count in (1, 2, 3):
            assert [row.tolist() for row in sess.run(rows[:count])] == [[0.0]] * count


def test_what_has_to_be_where_it_does_not_fit_cannot_follow():
    def asking():
        with fb.device("cpu:0"):
            return zeros(60, "v")

    with pytest.raises(CannotFollow):
        placed_after(zeros(100, "w"), asking, small_and_large())


def test_what_cannot_part_from_what_leaves_it_no_room_cannot_follow():
    w = fb.Variable(np.zeros(100, np.float32), name="w")
    with pytest.raises(CannotFollow):
        placed_after(w + 0.0, lambda: fb.assign_add(w, np.ones(100, np.float32)), small_and_large())


def soft(fetches, feeds=None, devices=("cpu:0", "simulated:0")):
    """Where a session that places softly runs something, and why."""
    with fb.Session(devices=list(devices), soft_placement=True) as sess:
        return sess.explain(fetches, feeds)


@pytest.mark.parametrize(
    ("request_", "device"),
    [("gpu:0", None), ("simulated:7", "simulated:0"), ("/job:far/task:3", None)],
)
def test_softly_another_device_does(x, request_, device):
    with fb.device(request_):
        y = fb.exp(x, name="y")
    refused = pytest.raises(fb.errors.InvalidArgumentError, match="soft_placement=True")
    with fb.Session(devices=["cpu:0", "simulated:0"]) as sess, refused:
        sess.run(y, {x: [1.0, 2.0]})
    plan = soft(y, {x: (2,)})
    assert device is None or plan.device(y).endswith(device)
    assert plan.reason(y).startswith(f"'y' asks for {y.op.device}, which cannot be met")
    with fb.Session(soft_placement=True) as sess:
        assert sess.run(y, {x: [0.0, 0.0]}).tolist() == [1.0, 1.0]


def test_softly_a_kind_without_a_kernel_is_left():
    words = fb.placeholder(fb.string, [2])
    with fb.device("simulated:0"):
        joined = fb.strings.join([words, words], name="joined")
    with fb.Session(devices=["cpu:0", "simulated:0"], soft_placement=True) as sess:
        assert sess.run(joined, {words: ["a", "b"]}).tolist() == [b"aa", b"bb"]
    assert soft(joined, {words: ["a", "b"]}).device(joined).endswith("cpu:0")


def test_softly_a_request_that_can_be_met_is_met(x):
    with fb.device("simulated:0"):
        y = fb.exp(x, name="y")
    assert soft(y, {x: (2,)}).reason(y) == "'y' asks for /device:simulated:0"


@pytest.mark.parametrize(
    ("lives", "reads"), [("simulated:0", "cpu:0"), ("cpu:0", "simulated:0"), ("cpu:1", "cpu:0")]
)
def test_softly_a_variable_is_where_it_asks_to_be(lives, reads):
    with fb.device(lives):
        v = fb.Variable([1.0, 2.0], caching_device=reads, name="v")
    trained = fb.train.GradientDescentOptimizer(1.0).minimize(fb.reduce_sum(v * 1.0))
    devices = ["cpu:0", "cpu:1", "simulated:0"]
    assert soft(trained, devices=devices).device(v.op).endswith(lives)
    with fb.Session(devices=devices, soft_placement=True) as sess:
        for _ in range(2):
            sess.run(trained)
        assert sess.run(v).tolist() == [-1.0, 0.0]
