"""oneDNN's kernels mean what the definitions' own mean, and leave to those what they cannot."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.kernels import onednn
from flowbook.graph.model.registry import asked_of, kernel_for, op_named, registered_kernels
from tests.need import requires

pytestmark = requires(distribution="onednn-cpu-gomp")

AXIS = st.tuples(
    st.integers(0, 9),  # elements beyond a window's extent
    st.integers(1, 4),  # of a window
    st.integers(1, 3),  # from window to window
    st.integers(1, 3),  # apart
    st.tuples(st.integers(0, 4), st.integers(0, 4)),  # padding
)
AXES = st.lists(AXIS, min_size=1, max_size=3)
PADDING = st.sampled_from(["SAME", "VALID", "pairs"])
CHANNELS = st.sampled_from([1, 2, 3, 8, 16, 17, 33])


def special(type_name):
    (registered,) = registered_kernels(op_named(type_name), "cpu")
    return registered.function


def both(type_name, *inputs, **how):
    """What the definition's kernel gives, and what oneDNN's does; whether that took oneDNN."""
    calls = []

    def call(self, *arrays, compute=onednn.Computation.__call__):
        calls.append(self)
        return compute(self, *arrays)

    with mock.patch.object(onednn.Computation, "__call__", call):
        found = special(type_name)(np, *inputs, **how)
    return op_named(type_name).kernel(np, *inputs, **how), found, bool(calls)


def whole_numbers(random, *shape):
    # Sums and products of few small whole numbers are exact in any order.
    return random.integers(-3, 4, shape).astype(np.float32)


@given(AXES, PADDING, CHANNELS, CHANNELS, st.sampled_from(["", "Depthwise"]))
def test_convolutions_agree(axes, padding, channels, others, kind):
    beyond, sizes, strides, dilations, pairs = (tuple(a[i] for a in axes) for i in range(5))
    lengths = [b + (n - 1) * d + 1 for b, n, d in zip(beyond, sizes, dilations, strict=True)]
    how = {
        "strides": strides,
        "padding": pairs if padding == "pairs" else padding,
        "dilations": dilations,
    }
    random = np.random.default_rng(0)
    input = whole_numbers(random, 2, *lengths, channels)
    filters = whole_numbers(random, *sizes, channels, min(others, 3) if kind else others)
    # One channel, or products of matrices, may be left to NumPy.
    is_onednns = channels > 1 and (max(sizes) > 1 or bool(kind))
    expected, output, took = both(f"{kind}Convolution", input, filters, **how)
    np.testing.assert_array_equal(output, expected)
    assert took >= is_onednns
    slopes = whole_numbers(random, *output.shape)
    for name, inputs in (
        ("Input", (np.array(input.shape), filters, slopes)),
        ("Filter", (input, np.array(filters.shape), slopes)),
    ):
        expected, found, took = both(f"{kind}ConvolutionBackprop{name}", *inputs, **how)
        np.testing.assert_array_equal(found, expected)
        assert took >= is_onednns


def pool_of(axes, padding):
    beyond, sizes, strides, dilations, pairs = (tuple(a[i] for a in axes) for i in range(5))
    lengths = [b + (n - 1) * d + 1 for b, n, d in zip(beyond, sizes, dilations, strict=True)]
    # A window that holds nothing but padding is refused when the graph is built.
    reach = [(n - 1) * d for n, d in zip(sizes, dilations, strict=True)]
    fitting = [(min(a, r), min(b, r)) for (a, b), r in zip(pairs, reach, strict=True)]
    return lengths, {
        "ksize": (1, *sizes, 1),
        "strides": (1, *strides, 1),
        "padding": ((0, 0), *fitting, (0, 0)) if padding == "pairs" else padding,
        "dilations": (1, *dilations, 1),
    }


@given(AXES, PADDING, CHANNELS)
def test_pools_agree(axes, padding, channels):
    lengths, how = pool_of(axes, padding)
    random = np.random.default_rng(0)
    # Most windows have several equal maxima.
    input = whole_numbers(random, 2, *lengths, channels)
    expected, output, _ = both("MaxPool", input, **how)
    np.testing.assert_array_equal(output, expected)
    slopes = whole_numbers(random, *output.shape)
    expected, found, _ = both("MaxPoolGrad", input, output, slopes, **how)
    np.testing.assert_array_equal(found, expected)
    expected, found, _ = both("AvgPool", input, **how)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    expected, found, _ = both("AvgPoolGrad", np.array(input.shape), slopes, **how)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@given(
    st.integers(1, 5),
    st.sampled_from([0.5, 0.75, 1.0]),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.sampled_from([1, 7, 16, 64]),
)
def test_response_normalisation_agrees(radius, beta, bias, channels):
    how = {"depth_radius": radius, "bias": bias, "alpha": 0.01, "beta": beta}
    random = np.random.default_rng(0)
    input, slopes = random.standard_normal((2, 2, 3, 4, channels)).astype(np.float32)
    expected, found, _ = both("LRN", input, **how)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    expected, found, _ = both("LRNGrad", input, slopes, **how)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


# Where the definitions' own kernels run

POOL = {
    "ksize": (1, 2, 2, 1),
    "strides": (1, 2, 2, 1),
    "padding": "SAME",
    "dilations": (1, 1, 1, 1),
}


@pytest.mark.parametrize("value", [np.nan, -np.inf, np.finfo(np.float32).min])
def test_maxima_of_what_onednn_passes_over(value):
    input = np.full((1, 4, 4, 16), -1, np.float32)
    input[0, 0, 0, 3] = input[0, 2:, 2:, 5] = input[0, 3, 3, 7] = value
    slopes = np.ones((1, 2, 2, 16), np.float32)
    expected, output, took = both("MaxPool", input, **POOL)
    np.testing.assert_array_equal(output, expected)
    assert not took
    expected, found, took = both("MaxPoolGrad", input, output, slopes, **POOL)
    np.testing.assert_array_equal(found, expected)
    assert not took


@pytest.mark.parametrize("value", [np.inf, np.finfo(np.float32).max, 0.0, -0.0])
def test_maxima_of_other_values(value):
    input = np.full((1, 4, 4, 16), -1, np.float32)
    input[0, 0, 0, 3] = input[0, 2:, 2:, 5] = input[0, 3, 3, 7] = value
    slopes = np.ones((1, 2, 2, 16), np.float32)
    expected, output, took = both("MaxPool", input, **POOL)
    np.testing.assert_array_equal(output, expected)
    assert took
    expected, found, took = both("MaxPoolGrad", input, output, slopes, **POOL)
    np.testing.assert_array_equal(found, expected)
    assert took


def test_the_gradient_of_maxima_that_are_fed():
    input = np.ones((1, 4, 4, 16), np.float32)
    slopes = np.ones((1, 2, 2, 16), np.float32)
    expected, found, _ = both("MaxPoolGrad", input, slopes + 1, slopes, **POOL)
    np.testing.assert_array_equal(found, expected)
    assert not found.any()


@pytest.mark.parametrize(
    "changed",
    [{"ksize": (1, 2, 2, 3)}, {"strides": (1, 1, 1, 2)}],
    ids=["over channels", "passing over channels"],
)
def test_windows_of_several_channels_are_left_to_the_definition(changed):
    x = fb.placeholder(fb.float32, [1, 4, 4, 16])
    how = {**POOL, **changed}
    y = fb.nn.max_pool(x, how["ksize"], how["strides"], "SAME")
    assert kernel_for(y.op.op_def, "cpu", asked_of(y.op)) is y.op.op_def.kernel


@pytest.mark.parametrize(
    ("dtype", "is_special"),
    [(fb.float32, True), (fb.bfloat16, True), (fb.float64, False), (fb.float16, False)],
)
def test_dtypes(dtype, is_special):
    x = fb.placeholder(dtype, [1, 4, 4, 2])
    y = fb.nn.max_pool(fb.nn.conv2d(x, fb.ones([2, 2, 2, 3], dtype), 1, "SAME"), 2, 2, "SAME")
    operations = [y.op, y.op.inputs[0].op]
    operations += [g.op for g in fb.gradients(y, [x, operations[1].inputs[1]])]
    assert len({op.type for op in operations}) == 4
    for op in operations:
        is_own = kernel_for(op.op_def, "cpu", asked_of(op)) is op.op_def.kernel
        assert is_own is not is_special


@pytest.mark.parametrize("shape", [(0, 4, 4, 2), (1, 0, 4, 2), (1, 4, 4, 0)])
def test_nothing_to_compute(shape):
    how = {"strides": (1, 1), "padding": "SAME", "dilations": (1, 1)}
    input, filters = np.ones(shape, np.float32), np.ones((2, 2, shape[-1], 3), np.float32)
    expected, found, took = both("Convolution", input, filters, **how)
    np.testing.assert_array_equal(found, expected)
    assert not took


def test_errors_are_the_definitions():
    how = {"strides": (1, 1), "padding": "VALID", "dilations": (1, 1)}
    input, filters, slopes = (
        np.ones(dims, np.float32) for dims in ((1, 4, 4, 2), (2, 2, 2, 3), (1, 4, 4, 3))
    )
    for name, inputs in (
        ("Convolution", (input[..., :1], filters)),
        ("ConvolutionBackpropInput", (np.array(input.shape), filters, slopes)),
        ("ConvolutionBackpropFilter", (input, np.array(filters.shape), slopes)),
    ):
        messages = []
        for kernel in (special(name), op_named(name).kernel):
            with pytest.raises(fb.errors.InvalidArgumentError) as caught:
                kernel(np, *inputs, **how)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


# Memory


def test_arrays_of_any_layout():
    random = np.random.default_rng(0)
    how = {"strides": (1, 1), "padding": "SAME", "dilations": (1, 1)}
    input = whole_numbers(random, 8, 10, 6, 3).transpose(1, 2, 0, 3)[::2, ::-1]
    filters = whole_numbers(random, 4, 3, 3, 3).transpose(1, 2, 3, 0)
    expected, found, took = both("Convolution", input, filters, **how)
    np.testing.assert_array_equal(found, expected)
    assert took
    assert found.flags.owndata
    assert found.flags.c_contiguous


def test_results_are_the_callers_own():
    x = fb.placeholder(fb.float32, [1, 4, 4, 16])
    y = fb.nn.avg_pool(
        fb.nn.conv2d(x, np.ones((1, 1, 16, 16), np.float32), 1, "SAME"), 1, 1, "SAME"
    )
    images = np.ones((1, 4, 4, 16), np.float32)
    with fb.Session() as session:
        found = [session.run(y, {x: images}) for _ in range(4)]
    assert images.max() == 1.0
    for number, array in enumerate(found):
        assert (array == 16.0).all()
        array[...] = 0.0
        assert not any(np.may_share_memory(array, other) for other in found[number + 1 :])
