"""The plan of a run, without the run."""

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.figures import OVER_FAST_BUS
from flowbook.exec.placement.machine import COMMON
from flowbook.exec.report import in_seconds
from flowbook.widgets.tables import table_of

CPU = "/job:localhost/task:0/device:cpu:"
GPU = "/job:localhost/task:0/device:gpu:"


@pytest.fixture
def x():
    return fb.placeholder(fb.float32, [None, 256], name="x")


def branches(x, count=4):
    """Sums that know nothing of each other, and their sum."""
    return fb.add_n([fb.reduce_sum(fb.exp(x * float(i))) for i in range(count)], name="y")


def test_a_plan_of_one_device(x):
    y = fb.matmul(x, np.eye(256, dtype=np.float32), name="y")
    with fb.Session() as sess:
        plan = sess.explain(y, {x: (1000, 256)})
    flops, moved = 2 * 1000 * 256 * 256, 4 * (2 * 1000 * 256 + 256 * 256)
    cpu = COMMON.cpu
    expected = flops / cpu.flops + moved / cpu.bytes + cpu.overhead
    assert plan.seconds == pytest.approx(expected)
    assert plan.device(y) == CPU + "0"
    assert plan.reason(y) == f"nothing constrains it, and {CPU}0 is the first device"
    assert plan.operations[y.op].end == plan.seconds
    assert plan.critical_path == [y.op]
    assert plan.transfers == []
    load = plan.loads[CPU + "0"]
    assert load.operations == 1
    assert load.peak_bytes == load.value_bytes == 1000 * 256 * 4
    assert load.largest == [("y:0", 1000 * 256 * 4)]


def test_nothing_is_run(x):
    ran = []
    y = fb.py_func(lambda a: ran.append(1) or a, [x], fb.float32)
    v = fb.Variable(1.0, name="v")
    with fb.Session() as sess:
        sess.explain([y, v], {x: (2, 256)})
        assert not sess.has_values
    assert not ran


def test_shapes_or_values_are_fed(x):
    y = fb.exp(x)
    with fb.Session() as sess:
        by_value = sess.explain(y, {x: np.zeros((7, 256), np.float32)})
        by_shape = sess.explain(y, {"x:0": fb.Shape([7, 256])})
        assert by_value.loads == by_shape.loads
        with pytest.raises(ValueError, match="would be fed with"):
            sess.explain(y, {x: (7, 255)})
        with pytest.raises(ValueError, match="a feed of an explanation is"):
            sess.explain(y, {x: "seven"})
        with pytest.raises(ValueError, match="it must be fed"):
            sess.explain(y)


def test_devices_that_are_not_here():
    x = fb.placeholder(fb.float32, [4096, 256], name="x")
    y = branches(x)
    with fb.Session() as sess:
        here = sess.explain(y, {x: (4096, 256)})
        one = sess.explain(y, {x: (4096, 256)}, ["gpu:0"])
        four = sess.explain(y, {x: (4096, 256)}, [f"gpu:{i}" for i in range(4)])
        assert one.seconds < here.seconds
        assert list(four.loads) == [*[f"{GPU}{i}" for i in range(4)], CPU + "0"]
        assert set(four.operations[y.op].decision.ends) == set(four.loads)
        assert [device.name for device in sess.list_devices()] == [CPU + "0"]
    sent = next(t for t in one.transfers if t.value == "x:0")
    assert (sent.source, sent.destination, sent.bytes) == ("host", GPU + "0", 4096 * 256 * 4)
    expected = OVER_FAST_BUS.latency + sent.bytes / OVER_FAST_BUS.bytes
    assert sent.end - sent.begin == pytest.approx(expected)
    assert one.loads[GPU + "0"].received_bytes == one.transferred_bytes == sent.bytes


def test_what_rules_devices_out(x):
    with fb.device("/device:gpu:1"):
        a = fb.exp(x, name="a")
    b = fb.random_shuffle(x, name="b")
    with fb.Session() as sess:
        plan = sess.explain([a, b], {x: (2, 256)}, ["gpu:0", "gpu:1"])
        assert plan.reason(a) == "'a' asks for /device:gpu:1"
        assert f"{GPU}0 has no kernel for 'b'" in plan.reason(b)
        with pytest.raises(ValueError, match="admits none of the devices"):
            sess.explain(a, {x: (2, 256)})


def test_the_plan_is_that_of_the_run(x):
    y = branches(x)
    with fb.Session(cpus=2) as sess:
        plan = sess.explain(y, {x: (4096, 256)})
    # The graph does not tell how large x is: so everything runs on one device, and a note says it.
    assert {each.device for each in plan.operations.values()} == {CPU + "0"}
    assert plan.better.seconds < plan.seconds * 0.7
    assert "`sess.replace(plan.better)` takes that" in str(plan)
    known = fb.placeholder(fb.float32, [4096, 256])
    with fb.Session(cpus=2) as sess:
        plan = sess.explain(branches(known), {known: (4096, 256)})
    assert {each.device for each in plan.operations.values()} == {CPU + "0", CPU + "1"}
    assert plan.better is None
    assert "Placed by what is known" not in str(plan)


def test_variables_live_where_they_are():
    with fb.device("cpu:1"):
        v = fb.Variable(np.zeros(1000, np.float32), name="v")
    with fb.Session(cpus=2) as sess:
        plan = sess.explain(v)
        assert plan.loads[CPU + "1"].variable_bytes == 4000
        assert plan.loads[CPU + "1"].value_bytes == 0
        sess.run(v)
        assert f"{v.op.name!r} lives there" in sess.explain(v).reason(v.op)


def test_what_does_not_run():
    x = fb.placeholder(fb.float32, [2], name="x")
    a = fb.constant(1.0) + 2.0
    y = fb.add(x, a, name="y")
    other = fb.exp(x, name="other")
    with fb.Session() as sess:
        plan = sess.explain(y, {x: (2,)})
    with pytest.raises(fb.errors.NotFoundError, match="nothing of it is left to run"):
        plan.reason(a)
    with pytest.raises(fb.errors.NotFoundError, match="'other': it does not run here"):
        plan.device(other)


def test_as_a_table_and_as_html(x):
    with fb.Session() as sess:
        plan = sess.explain(fb.exp(x, name="e"), {x: (1000, 256)})
    assert str(plan.table) == repr(plan)
    assert repr(plan).splitlines()[0].endswith("predicted, 0 transfers of 0 B")
    assert "The step ends when this is done: e." in repr(plan)
    html = table_of(plan)
    assert "device:cpu:0" in html
    assert "<th" in html


def test_long_paths_are_cut():
    h = x = fb.placeholder(fb.float32, [2])
    for _ in range(20):
        h = fb.exp(h)
    with fb.Session() as sess:
        plan = sess.explain(h, {x: (2,)})
    assert len(plan.critical_path) == 20
    assert ", 12 more, " in str(plan)


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        (["/job:worker"], "says no kind of device"),
        (["gpuu:0"], r"no kind of device that is known(.|\n)*did you mean gpu\?"),
        (["gpu:0", "gpu:0"], "names one twice"),
        ("gpu:0", "devices is a list of names"),
        ([3], "named by a string"),
    ],
)
def test_devices_that_cannot_be_imagined(x, devices, message):
    with fb.Session() as sess, pytest.raises((ValueError, TypeError), match=message):
        sess.explain(fb.exp(x), {x: (2, 256)}, devices)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ns"),
        (4.2e-7, "420 ns"),
        (1.26e-5, "12.6 us"),
        (0.0123, "12.3 ms"),
        (0.99999, "1.00 s"),
        (250.0, "250 s"),
    ],
)
def test_times_have_three_digits(seconds, text):
    assert in_seconds(seconds) == text


def test_what_is_made_in_place_of_what_is_left_out():
    x = fb.placeholder(fb.float32, [512, 512], name="x")
    a, b = fb.exp(x, name="a"), fb.exp(x, name="b")
    i = fb.identity(x, name="i")
    folded = fb.constant(1.0) + 2.0
    y = fb.add_n([a, b, i, folded + a], name="y")
    with fb.Session() as sess:
        plan = sess.explain(y, {x: (512, 512)})
    assert plan.in_place_of == {b: a, i: x}
    assert plan.went[b.op] == "merged into 'a', which is the same"
    assert plan.operations[a.op].bytes == 512 * 512 * 4
    assert plan.graph is x.graph
    assert (list(plan.fetched), list(plan.fed)) == ([y], [x])


def test_what_is_joined_into_a_sum_is_made_by_it():
    x = fb.placeholder(fb.float32, [8, 64], name="x")
    w = fb.placeholder(fb.float32, [8, 64], name="w")
    pairs = [(x, w), (w, x), (x, x)]
    products = [fb.matmul(*p, transpose_a=True, name=f"p{i}") for i, p in enumerate(pairs)]
    y = fb.add_n(products, name="y")
    with fb.Session() as sess:
        plan = sess.explain(y, {x: (8, 64), w: (8, 64)})
    assert plan.in_place_of == dict.fromkeys(products, y)


def test_a_plan_of_nothing_is_of_no_graph():
    with fb.Session() as sess:
        assert sess.explain([]).graph is None


@pytest.mark.parametrize("cpus", [1, 2])
def test_what_was_computed_before_the_step_has_no_device(cpus):
    folded = fb.constant(2.0) * 3.0
    with fb.Session(cpus=cpus) as sess:
        plan = sess.explain(folded)
    assert plan.seconds == 0
    with pytest.raises(fb.errors.NotFoundError, match="nothing of it is left to run"):
        plan.device(folded)
