"""The simulated device: its arrays compute as NumPy's do, and refuse what a GPU's refuse."""

from __future__ import annotations

import gc
import operator

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.device import Device
from flowbook.exec.devices.simulated import OPERATORS, Simulated
from flowbook.graph.model.dtypes import MOVABLE, SMALL_INTS, float4_e2m1fn
from flowbook.graph.model.errors import InternalError, ResourceExhaustedError

MATRIX = np.array([[1, -2, 3], [4, 5, -6]], np.int32)


@pytest.fixture
def device():
    return Simulated()


@pytest.fixture
def x(device):
    return device.own(MATRIX)


def evaluated(text, device, x, **others):
    return eval(text, {"np": np, "xp": device.xp, "x": x, **others})


# Values come, go and are counted


@pytest.mark.parametrize(
    "value",
    [MATRIX, np.float32(2), np.zeros((0, 3)), np.array(True), np.ones(2, np.complex64)],
    ids=["matrix", "scalar", "empty", "truth", "complex"],
)
def test_values_come_back_as_they_were(device, value):
    array = device.own(value)
    assert device.check(array)
    assert (array.shape, array.dtype, array.ndim) == (value.shape, value.dtype, value.ndim)
    found = device.fetch(array)
    assert type(found) is (np.ndarray if value.ndim else type(value[()]))
    assert found.dtype == value.dtype
    np.testing.assert_array_equal(found, value)


def test_copies_are_nobody_elses(device):
    value = MATRIX.copy()
    array = device.own(value)
    value[:] = 0
    found = device.fetch(array)
    np.testing.assert_array_equal(found, MATRIX)
    found[:] = 0
    np.testing.assert_array_equal(device.fetch(array), MATRIX)


def test_bytes_are_counted_each_way(device, x):
    assert (device.copied_in, device.copied_out) == (MATRIX.nbytes, 0)
    device.fetch(x[0])
    assert (device.copied_in, device.copied_out) == (MATRIX.nbytes, MATRIX[0].nbytes)
    device.xp.asarray(MATRIX)
    device.xp.array([1.0, 2.0])
    assert device.copied_in == 2 * MATRIX.nbytes + 16
    device.xp.asarray(x)
    device.xp.zeros((5, 5))
    assert device.copied_in == 2 * MATRIX.nbytes + 16


@pytest.mark.parametrize(
    "asking",
    [
        "bool(x)",
        "int(x[0])",
        "float(x[0])",
        "complex(x[0])",
        "x.item()",
        "x.tolist()",
        "x[x > 0]",
        "x.nonzero()",
        "xp.unique(x)",
        "2.0 in x",
        "str(x)",
        "f'{x[0]:.3f}'",
        "x.ndim if x else None",
    ],
)
def test_who_asks_for_a_value_waits(device, asking):
    x = device.own(np.array([2.0]))
    evaluated(asking, device, x)
    assert device.waits == 1


def test_errors_can_show_values(x):
    assert f"{x[0, 0]} of {x[0]}" == "1 of [ 1 -2  3]"


def test_what_depends_on_no_value_does_not_wait(device, x):
    xp = device.xp
    for row in x:
        xp.add(row, 1, out=row)
    xp.concatenate([x, xp.zeros_like(x)], axis=1).reshape(-1).sum(axis=0)
    assert (len(x), x.size, xp.ndim(x), xp.result_type(x, np.float32)) == (2, 6, 2, np.float64)
    assert device.waits == 0


# Computing


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_numpys(device, name):
    left, right = np.array([[7, 2], [3, 5]]), np.array([[1, 3], [2, 2]])
    if name in ("__truediv__", "__rtruediv__", "__itruediv__"):
        left = left.astype(np.float64)
    others = () if name in ("__neg__", "__pos__", "__abs__", "__invert__") else (right,)
    given = left.copy()
    expected = getattr(given, name)(*others)
    array = device.own(left)
    found = getattr(array, name)(*[device.own(other) for other in others])
    if name.startswith("__i") and name != "__invert__":
        assert found is array
    many = found if isinstance(found, tuple) else (found,)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for one, value in zip(many, wanted, strict=True):
        np.testing.assert_array_equal(device.fetch(one), value)


@pytest.mark.parametrize("scalar", [3, 2.5, True, 1j, np.float32(3), np.int8(2)], ids=repr)
def test_scalars_mix_with_arrays(device, x, scalar):
    for function in (operator.add, operator.mul, operator.eq):
        for found, wanted in (
            (function(x, scalar), function(MATRIX, scalar)),
            (function(scalar, x), function(scalar, MATRIX)),
        ):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(device.fetch(found), wanted)


@pytest.mark.parametrize(
    "reading",
    [
        "x.T",
        "x.reshape(3, 2)",
        "x.reshape((-1,))",
        "x.transpose(1, 0)",
        "x.astype(np.float32)",
        "x.astype(np.complex64).imag",
        "x.sum(axis=1, keepdims=True)",
        "x.max(0, None, True)",
        "x.argsort(axis=-1)",
        "x.swapaxes(0, 1)",
        "x.copy()",
        "x.view(np.uint32)",
        "x.take(1, axis=1)",
        "(x > 0).any(axis=0)",
        "xp.where(x > 0, x, 0)",
        "xp.concatenate([x, x], axis=0)",
        "xp.stack((x, x))",
        "xp.split(x, [1], axis=1)[1]",
        "xp.matmul(x, x.T)",
        "xp.einsum('ij,kj->ik', x, x)",
        "xp.add.reduce(x, axis=1)",
        "xp.linalg.det(xp.matmul(x, x.T) * 1.0)",
        "xp.linalg.svd(x * 1.0)[1]",
        "xp.fft.rfft(x, n=4)",
        "xp.lib.stride_tricks.sliding_window_view(x, 2, axis=1)",
        "xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1)",
        "xp.full((2, 2), x[0, 0])",
        "xp.unique(x, return_index=True)[1]",
        "xp.exp(2.0)",
        "x[1:, ::-1]",
        "x[..., None]",
        "x[x < 0]",
        "x[xp.asarray([1, 0]), 0]",
    ],
)
def test_functions_and_methods_are_numpys(device, x, reading):
    found = evaluated(reading, device, x)
    wanted = eval(reading, {"np": np, "xp": np, "x": MATRIX})
    assert device.check(found)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(device.fetch(found), wanted)


def test_what_is_known_of_an_array_is_numpys(x):
    for name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides"):
        assert getattr(x, name) == getattr(MATRIX, name)
    assert x.flags.c_contiguous
    assert not x.T.flags.c_contiguous


def test_reductions_are_arrays_of_the_device(device, x):
    total = device.xp.sum(x)
    assert (total.shape, device.fetch(total)) == ((), 5)
    assert device.check(device.xp.array_equal(x, x))


def test_parts_are_views_and_can_be_written(device, x):
    x[0, 1:] = 9
    x.T[0] *= 10
    x[device.xp.asarray([1]), device.xp.asarray([2])] = device.own(np.array([7], np.int32))
    np.testing.assert_array_equal(device.fetch(x), [[10, 9, 9], [40, 5, 7]])
    z = device.xp.zeros(2, np.complex64)
    z.real, z.imag = 1, device.own(np.array([2.0, 3.0], np.float32))
    np.testing.assert_array_equal(device.fetch(z), [1 + 2j, 1 + 3j])


def test_warnings_of_the_host_are_none_of_the_devices(device):
    zero = device.own(np.zeros(1))
    assert np.isnan(device.fetch(zero / zero))
    assert np.isinf(device.fetch(device.xp.divide(1, zero)))


# What it refuses


@pytest.mark.parametrize(
    "mixing",
    [
        "x + other",
        "other + x",
        "other @ x.T",
        "x == other",
        "x.__iadd__(other)",
        "x.__setitem__(0, other[0])",
        "x[other]",
        "x.dot(other)",
        "xp.add(x, other)",
        "xp.add(x, x, out=other)",
        "xp.concatenate([x, other])",
        "xp.where(x > 0, other, x)",
    ],
)
@pytest.mark.parametrize("whose", ["the host's", "another device's"])
def test_arrays_do_not_mix_with_others(device, x, mixing, whose):
    other, named = MATRIX, "a host array"
    if whose == "another device's":
        other = Simulated(1).own(MATRIX)
        named = "/job:localhost/task:0/device:simulated:1"
    with pytest.raises(TypeError) as caught:
        evaluated(mixing, device, x, other=other)
    assert "/job:localhost/task:0/device:simulated:0" in str(caught.value)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    "converting",
    [
        "np.asarray(x)",
        "np.array(x)",
        "np.exp(x)",
        "np.sum(x)",
        "np.concatenate([x, x])",
        "np.float32(x)",
        "np.add(np.ones(3), x)",
        "np.zeros((2, 3)).__setitem__(..., x)",
        "np.zeros(3)[x]",
    ],
)
def test_nothing_makes_a_host_array_of_one(device, x, converting):
    with pytest.raises((TypeError, IndexError)):
        evaluated(converting, device, x)
    assert (device.waits, device.copied_out) == (0, 0)


@pytest.mark.parametrize(
    ("asking", "why"),
    [
        ("xp.vectorize", "no xp.vectorize"),
        ("xp.random", "no xp.random"),
        ("xp.vecdot", "no xp.vecdot"),
        ("xp.add.at", "xp.add of .* has no 'at'"),
        ("xp.maximum.reduce", "no 'reduce'"),
        ("xp.logaddexp.accumulate", "no 'accumulate'"),
        ("xp.sum.reduce", "no 'reduce'"),
        ("x.ctypes", "no 'ctypes'"),
        ("x.data", "no 'data'"),
        ("x.flags.writeable", "writeable"),
        ("xp.max(x, initial=0)", "no 'initial'"),
        ("xp.add(x, x, where=x > 0)", "no 'where'"),
        ("xp.take(x, 0, axis=0, mode='wrap')", "no 'mode'"),
        ("xp.empty((2,), object)", "object"),
        ("xp.array(['text'])", "U4"),
        ("np.zeros(3)[: x[0, 0]]", "integer"),
    ],
)
def test_what_gpus_lack_is_refused(device, x, asking, why):
    with pytest.raises((AttributeError, TypeError), match=why):
        evaluated(asking, device, x)


@pytest.mark.parametrize(
    "asking",
    [
        "xp.zeros(x)",
        "xp.zeros((x, 2))",
        "xp.ones((2, 2)).reshape(x)",
        "xp.ones((2, 2)).sum(axis=x)",
        "xp.arange(x)",
        "xp.tile(xp.ones(2), x)",
        "xp.ones((4, 4))[:x]",
    ],
)
def test_shapes_and_axes_are_the_hosts(device, asking):
    with pytest.raises(TypeError):
        evaluated(asking, device, device.own(np.int64(1)))
    assert device.waits == 0


@pytest.mark.parametrize(
    "access",
    [
        "x[outside]",
        "x.__setitem__(outside, 0)",
        "x.__setitem__(outside, x)",
        "x.take(outside, axis=0)",
        "xp.take(x, outside, axis=0)",
        "xp.take_along_axis(x, outside[:, None], axis=0)",
    ],
)
def test_indices_that_gpus_wrap_are_an_error(device, x, access):
    outside = device.own(np.array([0, 2]))
    with pytest.raises(InternalError, match="has to check its indices"):
        evaluated(access, device, x, outside=outside)


def test_the_hosts_own_indices_are_checked_by_everybody(x):
    with pytest.raises(IndexError):
        x[2]


def test_singular_matrices_are_not_noticed_on_gpus(device):
    with pytest.raises(InternalError, match="would not notice"):
        device.xp.linalg.inv(device.xp.zeros((2, 2)))


def test_writing_twice_is_an_error_unless_it_writes_the_same(device, x):
    twice = device.own(np.array([1, 1]))
    with pytest.raises(InternalError, match="more than once"):
        x[twice] = x[::-1]
    x[twice] = 0
    np.testing.assert_array_equal(device.fetch(x)[1], 0)


# Poison


@pytest.mark.parametrize("dtype", MOVABLE, ids=lambda dtype: dtype.name)
def test_fresh_memory_holds_poison(device, dtype):
    if dtype is fb.string:
        with pytest.raises(TypeError, match="nothing of object"):
            device.xp.empty((2, 3), dtype.numpy)
        return
    like = device.own(np.ones((2, 3), dtype.numpy))
    for fresh in (device.xp.empty((2, 3), dtype.numpy), device.xp.empty_like(like)):
        found = device.fetch(fresh)
        assert (found.shape, found.dtype) == ((2, 3), dtype.numpy)
        if dtype is fb.bool:
            assert found.all()
        elif dtype.is_integer or dtype in (*SMALL_INTS, float4_e2m1fn):
            assert (found == np.array(dtype.max).astype(dtype.numpy)).all()
        else:
            assert (found != found).all()


def test_numbers_that_do_not_fit_an_integer_become_poison(device):
    given = np.array([1.5, -0.5, np.nan, np.inf, -3.0, 300.0])
    for dtype, kept in ((np.uint8, [1, 0]), (np.int8, [1, 0])):
        found = device.fetch(device.own(given).astype(dtype))
        np.testing.assert_array_equal(found[:2], kept)
        assert (found[[2, 3, 5]] == np.iinfo(dtype).max).all()
    assert device.fetch(device.own(given).astype(np.uint8))[4] == 255


def test_freed_memory_cannot_be_used(device, x):
    row, other = x[0], x + 0
    buffer = x.buffer
    device.free(x)
    assert (buffer == np.iinfo(np.int32).max).all()
    for use in (
        lambda: x + 1,
        lambda: row.sum(),
        lambda: device.fetch(row),
        lambda: device.xp.add(other, row),
        lambda: x.T,
        lambda: x.__setitem__(0, 1),
        lambda: len(x),
    ):
        with pytest.raises(InternalError, match="used after its memory was given back"):
            use()
    np.testing.assert_array_equal(device.fetch(other), MATRIX)


# Memory


def test_memory_lasts_as_long_as_the_last_array_in_it(device):
    x = device.own(np.zeros(1000))
    assert device.used == 8000
    part = x[10:20].reshape(2, 5)
    y = x * 2
    assert device.used == 16000
    del x, y
    gc.collect()
    assert device.used == 8000
    device.free(part)
    assert device.used == 0
    device.free(part)
    del part
    gc.collect()
    assert device.used == 0


def test_there_is_no_more_memory_than_the_limit():
    device = Simulated(3, memory_limit=1000)
    x = device.own(np.zeros(100))
    for ask in (lambda: x + 1, lambda: device.own(np.zeros(26)), lambda: device.xp.ones((5, 6))):
        with pytest.raises(ResourceExhaustedError) as caught:
            ask()
        assert str(caught.value).startswith(
            "/job:localhost/task:0/device:simulated:3 is out of memory: "
        )
        assert "bytes were asked for, and 800 of 1000 are in use" in str(caught.value)
    assert device.used == 800
    x += 1
    y = device.own(np.zeros(25))
    assert device.used == 1000
    del y
    gc.collect()
    assert device.used == 800


def test_it_is_a_device(device, x):
    assert isinstance(device, Device)
    assert (device.kind, device.spec.index) == ("simulated", 0)
    assert repr(x) == "<SimulatedArray int32 [2, 3] on /job:localhost/task:0/device:simulated:0>"
    assert not device.check(MATRIX)
    assert not Simulated(1).check(x)
    with pytest.raises(TypeError, match="does not mix"):
        Simulated(1).fetch(x)


def test_an_attribute_of_a_users_means_nothing_to_us() -> None:
    negated = fb.OpDef(
        "SimulatedOnHost",
        "x: float32 -> y: float32",
        infer=lambda x, **_: x.shape,
        kernel=lambda xp, x, on_host: xp.negative(x),
        attributes={"on_host": True},
    )
    x = fb.placeholder(fb.float32, [2])
    with fb.device("simulated:0"):
        y = fb.negative(negated(x))
    with fb.Session(devices=["cpu:0", "simulated:0"]) as sess:
        for _ in range(3):
            np.testing.assert_array_equal(sess.run(y, {x: [1.0, 2.0]}), [1.0, 2.0])
