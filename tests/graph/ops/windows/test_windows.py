"""Convolutions and pools against their definitions, over random sizes, strides and paddings."""

from __future__ import annotations

import inspect
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError, UnimplementedError
from flowbook.graph.ops.windows import convolution_kernels
from tests import naive_windows as naive
from tests.interpreter import evaluate

nn = fb.nn


@st.composite
def axes(draw: Any, count: int, is_pool: bool) -> dict[str, Any]:
    """Sizes of as many axes, and windows that fit them."""
    ints = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    sizes = [ints(1, 3) for _ in range(count)]
    dilations = [ints(1, 3) for _ in range(count)]
    extents = [(s - 1) * d + 1 for s, d in zip(sizes, dilations, strict=True)]
    kind = draw(st.sampled_from(["SAME", "VALID", "explicit"]))
    pairs = [(0, 0)] * count
    if kind == "explicit":
        # A pool's windows hold something that is not padding.
        most = [min(2, s - 1) if is_pool else 3 for s in sizes]
        pairs = [(ints(0, m), ints(0, m)) for m in most]
        dilations = [1] * count if is_pool else dilations
    if kind == "SAME" and is_pool:
        dilations = [1] * count
    extents = [(s - 1) * d + 1 for s, d in zip(sizes, dilations, strict=True)]
    least = [
        1 if kind == "SAME" else max(1, e - sum(p)) for e, p in zip(extents, pairs, strict=True)
    ]
    return {
        "dims": [n + ints(0, 4) for n in least],
        "sizes": sizes,
        "strides": [ints(1, 3) for _ in range(count)],
        "dilations": dilations,
        "padding": tuple(pairs) if kind == "explicit" else kind,
        "seed": ints(0, 1000),
        "batch": ints(1, 5),
        "known": draw(st.lists(st.booleans(), min_size=count + 2, max_size=count + 2)),
    }


def full(padding: Any) -> Any:
    return padding if isinstance(padding, str) else [[0, 0], *map(list, padding), [0, 0]]


def partial(value: np.ndarray, known: list[bool]) -> Any:
    """A placeholder of which only some dimensions are known."""
    return fb.placeholder(
        fb.float64, [d if k else None for d, k in zip(value.shape, known, strict=True)]
    )


CHUNKS = pytest.mark.parametrize("chunk", [1, 500, 1 << 20], ids=["tiny", "small", "usual"])


@CHUNKS
@pytest.mark.parametrize("count", [1, 2, 3])
def test_convolutions_are_what_they_are_defined_as(
    count: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution_kernels, "_COLUMNS", chunk)
    monkeypatch.setattr(convolution_kernels, "_CHUNK", chunk)

    @settings(max_examples=25, deadline=None)
    @given(axes(count, False), st.integers(1, 3), st.integers(1, 3))
    def check(how: Any, channels: int, filters: int) -> None:
        random = np.random.default_rng(how["seed"])
        x = random.normal(size=(how["batch"], *how["dims"], channels))
        w = random.normal(size=(*how["sizes"], channels, filters))
        args = (how["strides"], how["padding"], how["dilations"])
        expected = naive.convolution(x, w, *args)
        dy = random.normal(size=expected.shape)
        with Graph().as_default():
            tx, tw = partial(x, how["known"]), fb.placeholder(fb.float64, w.shape)
            y = nn.convolution(
                tx, tw, full(how["padding"]), strides=how["strides"], dilations=how["dilations"]
            )
            found = evaluate([y, *fb.gradients(y, [tx, tw], dy)], {tx: x, tw: w})
        assert y.shape.is_compatible_with(expected.shape)
        wanted = [
            expected,
            naive.input_gradient(x.shape, w, dy, *args),
            naive.filter_gradient(x, w.shape, dy, *args),
        ]
        for value, right in zip(found, wanted, strict=True):
            np.testing.assert_allclose(value, right, rtol=1e-9, atol=1e-11)

    check()


@CHUNKS
def test_depthwise_convolutions_are_what_they_are_defined_as(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolution_kernels, "_CHUNK", chunk)

    @settings(max_examples=25, deadline=None)
    @given(axes(2, False), st.integers(1, 3), st.integers(1, 3))
    def check(how: Any, channels: int, multiplier: int) -> None:
        random = np.random.default_rng(how["seed"])
        x = random.normal(size=(how["batch"], *how["dims"], channels))
        w = random.normal(size=(*how["sizes"], channels, multiplier))
        args = (how["strides"], how["padding"], how["dilations"])
        expected = naive.depthwise(x, w, *args)
        dy = random.normal(size=expected.shape)
        with Graph().as_default():
            tx, tw = partial(x, how["known"]), fb.placeholder(fb.float64, w.shape)
            y = nn.depthwise_conv2d(
                tx, tw, how["strides"], full(how["padding"]), dilations=how["dilations"]
            )
            found = evaluate([y, *fb.gradients(y, [tx, tw], dy)], {tx: x, tw: w})
        wanted = [
            expected,
            naive.depthwise_input_gradient(x.shape, w, dy, *args),
            naive.depthwise_filter_gradient(x, w.shape, dy, *args),
        ]
        for value, right in zip(found, wanted, strict=True):
            np.testing.assert_allclose(value, right, rtol=1e-9, atol=1e-11)

    check()


@pytest.mark.parametrize("count", [1, 2, 3])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_pools_are_what_they_are_defined_as(count: int, data: Any) -> None:
    how = data.draw(axes(count, True))
    random = np.random.default_rng(how["seed"])
    # Few values: many maxima are shared.
    x = random.integers(-2, 3, (how["batch"], *how["dims"], 2)).astype(np.float64)
    inner = [tuple(how[k]) for k in ("sizes", "strides")]
    padding = full(how["padding"])
    args = (
        (1, *inner[0], 1),
        (1, *inner[1], 1),
        padding if isinstance(padding, str) else tuple(map(tuple, padding)),
        (1, *how["dilations"], 1),
    )
    expected, _ = naive.max_pool(x, *args)
    means = naive.avg_pool(x, *args)
    dy = random.normal(size=expected.shape)
    with Graph().as_default():
        tx = partial(x, how["known"])
        rest = (padding, how["dilations"], how["strides"])
        most = nn.pool(tx, how["sizes"], "MAX", *rest)
        mean = nn.pool(tx, how["sizes"], "AVG", *rest)
        grads = [*fb.gradients(most, [tx], dy), *fb.gradients(mean, [tx], dy)]
        found = evaluate([most, mean, *grads], {tx: x})
    assert most.shape.is_compatible_with(expected.shape)
    wanted = [
        expected,
        means,
        naive.max_pool_gradient(x, dy, *args),
        naive.avg_pool_gradient(x.shape, dy, *args),
    ]
    for value, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(value, right, rtol=1e-12, atol=1e-12)


def image(*dims: int, dtype: Any = np.float64) -> np.ndarray:
    return np.random.default_rng(7).normal(size=dims).astype(dtype)


def test_a_transposed_convolution_is_the_transpose() -> None:
    x, w, z = image(2, 5, 6, 3), image(3, 2, 3, 4), image(2, 3, 3, 4)
    y = nn.conv2d(x, w, 2, "SAME")
    back = nn.conv2d_transpose(z, w, [2, 5, 6, 3], [1, 2, 2, 1])
    forward, backward = evaluate([y, back])
    np.testing.assert_allclose((forward * z).sum(), (backward * x).sum())
    line = nn.conv1d_transpose(image(2, 4, 3), image(3, 5, 3), [2, 8, 5], 2)
    volume = nn.conv3d_transpose(
        image(1, 2, 2, 2, 3), image(2, 2, 2, 5, 3), [1, 4, 4, 4, 5], 2, "VALID"
    )
    assert (line.shape, volume.shape) == ([2, 8, 5], [1, 4, 4, 4, 5])
    size = fb.placeholder(fb.int32, [])
    grown = nn.conv2d_transpose(z, w, [2, size, 6, 3], 2)
    assert grown.shape == [2, None, 6, 3]
    assert evaluate(grown, {size: 5}).shape == (2, 5, 6, 3)


def test_gradient_operations_are_public() -> None:
    x, w = fb.constant(image(2, 5, 6, 3)), fb.constant(image(3, 2, 3, 4))
    y = nn.conv2d(x, w, [1, 2, 1, 1], "VALID")
    dy = fb.constant(image(2, 2, 5, 4))
    own = [
        nn.conv2d_backprop_input([2, 5, 6, 3], w, dy, [1, 2, 1, 1], "VALID"),
        nn.conv2d_backprop_filter(x, fb.shape(w), dy, [1, 2, 1, 1], "VALID"),
    ]
    assert own[1].shape == w.shape
    values = evaluate([*own, *fb.gradients(y, [x, w], dy)])
    np.testing.assert_array_equal(values[0], values[2])
    np.testing.assert_array_equal(values[1], values[3])


def test_convolutions_of_one_meaning_agree() -> None:
    x, w = image(2, 6, 7, 3), image(2, 2, 3, 4)
    atrous, dilated = nn.atrous_conv2d(x, w, 2, "SAME"), nn.conv2d(x, w, 1, "SAME", dilations=2)
    line, flat = nn.conv1d(x[:, 0], w[0], 2, "SAME"), nn.conv2d(x[:, :1], w[:1], [1, 2], "SAME")
    deep, volume = nn.conv3d(x[:, None], w[None], 1, "VALID"), nn.conv2d(x, w, 1, "VALID")
    depth, mix = image(2, 2, 3, 2), image(1, 1, 6, 5)
    separable = nn.separable_conv2d(x, depth, mix, [1, 1, 1, 1], "SAME")
    steps = nn.conv2d(nn.depthwise_conv2d(x, depth, 1, "SAME"), mix, 1, "SAME")
    values = evaluate([atrous, dilated, line, flat, deep, volume, separable, steps])
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_allclose(values[2], values[3][:, 0])
    np.testing.assert_allclose(values[4][:, 0], values[5])
    np.testing.assert_allclose(values[6], values[7])


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_the_transpose_of_an_atrous_convolution(padding: str) -> None:
    x, w = fb.constant(image(2, 7, 6, 3)), fb.constant(image(3, 2, 3, 4))
    y = nn.atrous_conv2d(x, w, 2, padding)
    dy = fb.constant(image(*y.shape))
    transposed = nn.atrous_conv2d_transpose(dy, w, fb.shape(x), 2, padding)
    assert transposed.shape == x.shape
    np.testing.assert_array_equal(*evaluate([transposed, fb.gradients(y, x, dy)[0]]))


def test_pools_of_one_meaning_agree() -> None:
    x = image(2, 6, 7, 3)
    for flat, line, volume in (
        (nn.max_pool, nn.max_pool1d, nn.max_pool3d),
        (nn.avg_pool, nn.avg_pool1d, nn.avg_pool3d),
    ):
        y, row = flat(x, [1, 2, 3, 1], 2, "SAME"), flat(x[:, :1], [1, 3], [1, 2], "VALID")
        one, deep = line(x[:, 0], 3, 2, "VALID"), volume(x[:, None], [1, 2, 3], [1, 2, 2], "SAME")
        values = evaluate([y, row, one, deep])
        np.testing.assert_array_equal(values[0], values[3][:, 0])
        np.testing.assert_array_equal(values[1][:, 0], values[2])


def test_an_infinite_gradient_stays_where_the_maximum_is() -> None:
    x = fb.constant([[[1.0], [3.0], [3.0], [2.0]]])
    y = nn.max_pool1d(x, 4, 4, "VALID")
    [g] = fb.gradients(y, [x], np.full((1, 1, 1), np.inf, np.float32))
    np.testing.assert_array_equal(evaluate(g).ravel(), [0, np.inf, 0, 0])


def test_half_precision_is_summed_up_in_single() -> None:
    x, w = np.ones((1, 1, 5000, 1), np.float16), np.full((1, 4097, 1, 1), 1 / 64, np.float16)
    y = nn.conv2d(x, w, 1, "VALID")
    mean = nn.avg_pool(np.full((1, 100, 100, 1), 100.0, np.float16), 100, 1, "VALID")
    assert evaluate(y).ravel()[0] == np.float16(4097 / 64)
    assert evaluate(mean).ravel()[0] == 100


@pytest.mark.parametrize(("channels", "filters"), [(3, 0), (0, 2), (0, 0)])
@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("stride", [1, 2])
def test_no_channels_are_a_sum_of_nothing(
    channels: int, filters: int, size: int, stride: int
) -> None:
    x = fb.ones([2, 4, 5, channels])
    w = fb.ones([size, size, channels, filters])
    y = nn.conv2d(x, w, stride, "SAME")
    found = evaluate([y, *fb.gradients(y, [x, w])])
    assert [v.shape for v in found] == [y.shape, x.shape, w.shape]
    assert not any(v.any() for v in found)
    back = nn.conv2d_transpose(y, w, x.shape, stride, "SAME")
    assert not evaluate(back).any()


def test_memory_is_bounded() -> None:
    x, w = image(8, 64, 64, 16, dtype=np.float32), image(5, 5, 16, 8, dtype=np.float32)
    how = ((1, 1), "SAME", (1, 1))
    y = convolution_kernels.convolve(np, x, w, *how)
    of_all_windows = y[..., 0].size * w[..., 0].nbytes
    tracemalloc.start()
    try:
        convolution_kernels.convolve(np, x, w, *how)
        convolution_kernels.filter_gradient(np, x, np.array(w.shape), y, *how)
        convolution_kernels.input_gradient(np, np.array(x.shape), w, y, *how)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < of_all_windows / 2 < 40 << 20


def test_little_is_remembered_of_a_large_window() -> None:
    x = np.ones((1, 150, 149, 1), np.float32)
    pooled = nn.avg_pool(x, [1, 150, 149, 1], [1, 150, 149, 1], "VALID")
    tracemalloc.start()
    try:
        assert evaluate(pooled) == 1
        assert tracemalloc.get_traced_memory()[0] < 1e6
    finally:
        tracemalloc.stop()


def test_bias_is_added_along_the_last_of_any_number_of_axes() -> None:
    for dims in ((2, 3), (2, 4, 3), (2, 4, 5, 3), (1, 2, 2, 2, 3)):
        value, bias = fb.constant(image(*dims)), fb.constant([1.0, 2.0, 3.0], fb.float64)
        y = nn.bias_add(value, bias, "NHWC" if len(dims) == 4 else None)
        [g] = fb.gradients(y, [bias])
        assert y.shape == dims
        np.testing.assert_array_equal(evaluate(g), np.full(3, np.prod(dims[:-1])))


FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def channels_first(value: Any) -> Any:
    """Data with the channels after the batch, or so ordered what is said of each axis."""
    if isinstance(value, list):
        return [value[0], value[-1], *value[1:-1]]
    return np.moveaxis(value, -1, 1)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("padding", ["SAME", "VALID", "pairs"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_channels_may_come_first(count: int, padding: Any, is_known: bool) -> None:
    """It means the same as between transpositions, in numbers and pairs for each axis too."""
    last, first = FORMATS[count]
    tail = "" if count == 2 else f"{count}d"
    x, w = image(2, *range(5, 5 + count), 4), image(*range(2, 2 + count), 4, 3)
    strides, ksize = [1, *range(1, count + 1), 1], [1, *([2] * count), 1]
    pairs = [[0, 0], *([axis % 2, 1 - axis % 2] for axis in range(count)), [0, 0]]

    def built(data_format: str, ordered: Any) -> tuple[Any, list[Any]]:
        data = fb.placeholder(fb.float64, ordered(x).shape if is_known else [None] * x.ndim)
        how = (ordered(strides), ordered(pairs) if padding == "pairs" else padding, data_format)
        y = getattr(nn, f"conv{count}d")(data, w, *how)
        pooled = [
            getattr(nn, f"{kind}_pool{tail}")(data, ordered(ksize), *how) for kind in ("max", "avg")
        ]
        transpose = getattr(nn, f"conv{count}d_transpose")
        [slope] = fb.gradients([y, *pooled], data)
        grown = transpose(y, w, fb.shape(data), *how)
        sizes = transpose(y, w, ordered(list(x.shape)), *how)
        return data, [y, *pooled, slope, grown, sizes]

    fed, wanted = built(last, lambda value: value)
    data, found = built(first, channels_first)
    assert [y.shape.as_list() for y in found] == [channels_first(y.shape.as_list()) for y in wanted]
    for value, right in zip(
        evaluate(found, {data: channels_first(x)}), evaluate(wanted, {fed: x}), strict=True
    ):
        np.testing.assert_allclose(value, channels_first(right), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("padding", ["SAME", [[0, 0], [0, 0], [1, 0], [0, 1]]])
def test_what_goes_with_convolutions_takes_channels_first(padding: Any) -> None:
    x, w, depth = image(2, 5, 6, 3), image(2, 2, 3, 4), image(2, 2, 3, 2)
    bias = np.array([1.0, 2.0, 3.0])
    last = padding if isinstance(padding, str) else [padding[i] for i in (0, 2, 3, 1)]
    y = nn.conv2d(x, w, 1, last)
    dy = image(*y.shape)
    found = [
        nn.depthwise_conv2d(channels_first(x), depth, 1, padding, data_format="NCHW"),
        nn.separable_conv2d(
            channels_first(x), depth, image(1, 1, 6, 2), 1, padding, data_format="NCHW"
        ),
        nn.conv2d_backprop_input([2, 3, 5, 6], w, channels_first(dy), 1, padding, "NCHW"),
        nn.pool(channels_first(x), 2, "MAX", "SAME", data_format="NCHW"),
        nn.convolution(channels_first(x), w, padding, data_format="NCHW"),
        nn.bias_add(channels_first(x), bias, "NCHW"),
        *nn.fused_batch_norm(channels_first(x), bias, bias, data_format="NCHW")[:1],
        nn.fused_batch_norm(
            channels_first(x), bias, bias, bias, bias, data_format="NCHW", is_training=False
        )[0],
    ]
    wanted = [
        nn.depthwise_conv2d(x, depth, 1, last),
        nn.separable_conv2d(x, depth, image(1, 1, 6, 2), 1, last),
        nn.conv2d_backprop_input(x.shape, w, dy, 1, last),
        nn.pool(x, 2, "MAX", "SAME"),
        y,
        nn.bias_add(x, bias),
        *nn.fused_batch_norm(x, bias, bias)[:1],
        nn.fused_batch_norm(x, bias, bias, bias, bias, is_training=False)[0],
    ]
    by_filters = [
        nn.conv2d_backprop_filter(
            channels_first(x), w.shape, channels_first(dy), 1, padding, "NCHW"
        ),
        nn.conv2d_backprop_filter(x, w.shape, dy, 1, last),
    ]
    for value, right in zip(evaluate(found), evaluate(wanted), strict=True):
        np.testing.assert_allclose(value, channels_first(right), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(*evaluate(by_filters))


@pytest.mark.parametrize(
    ("function", "data_format", "words"),
    [
        (nn.conv1d, "NWC", "of sequences with filters"),
        (nn.conv3d, "NDHWC", "[batch, new depth, new height, new width, channels out]"),
        (nn.conv1d_transpose, "NWC", "The transpose of `conv1d`"),
        (nn.max_pool1d, "NWC", '"NWC", or "NCW" for'),
        (nn.avg_pool3d, "NDHWC", "over volumes"),
        (fb.layers.conv3d, "NDHWC", "[depth, height, width, channels, filters]"),
        (fb.layers.max_pooling1d, "NWC", "of sequences"),
    ],
)
def test_functions_over_sequences_and_volumes_are_like_those_over_images(
    function: Any, data_format: str, words: str
) -> None:
    over_images = function.__name__.replace("1d", "2d").replace("3d", "2d")
    namespace = fb.layers if "layers" in function.__module__ else nn
    like = getattr(namespace, over_images, None) or getattr(namespace, over_images[:-2])
    expected = inspect.signature(like).parameters
    found = inspect.signature(function).parameters
    assert list(found) == list(expected)
    assert found["data_format"].default == data_format
    assert {k: p for k, p in found.items() if k != "data_format"} == {
        k: p for k, p in expected.items() if k != "data_format"
    }
    assert words in function.__doc__
    assert "image" not in function.__doc__
    assert ">>>" not in function.__doc__
    assert pickle.loads(pickle.dumps(function)) is function


def test_a_misspelt_call_of_a_derived_function_is_explained() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="no argument 'stride'") as caught:
        nn.conv1d(np.ones((1, 5, 2)), np.ones((2, 2, 1)), stride=1, padding="SAME")
    assert "it is called strides" in str(caught.value)
    with pytest.raises(TypeError, match="conv3d: it needs 'padding'"):
        nn.conv3d(0, 0, 0)


def test_costs_count_multiplications_and_additions() -> None:
    x = fb.placeholder(fb.float32, [32, 32, 32, 16])
    w = fb.placeholder(fb.float32, [3, 5, 16, 64])
    y = nn.conv2d(x, w, 2, "SAME")
    flops = 2 * 32 * 16 * 16 * 3 * 5 * 16 * 64
    found = [t.op for t in (y, *fb.gradients(y, [x, w]))]
    assert [op.op_def.cost(op) for op in found] == [flops] * 3
    depth = nn.depthwise_conv2d(x, fb.placeholder(fb.float32, [3, 5, 16, 2]), 1, "SAME")
    assert depth.op.op_def.cost(depth.op) == 2 * 32 * 32 * 32 * 3 * 5 * 32


# Errors


X, W = (2, 5, 6, 3), (3, 2, 3, 4)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda x, w: nn.conv2d(x, w[:, :, :2], 1, "SAME"), InvalidArgumentError, "3 channels"),
        (lambda x, w: nn.conv2d(x[0], w, 1, "SAME"), InvalidArgumentError, "4, not the shape"),
        (
            lambda x, w: nn.conv2d(x[:, :2], w, 1, "VALID"),
            InvalidArgumentError,
            "does not fit the 2",
        ),
        (lambda x, w: nn.conv2d(x, w[:0], 1, "SAME"), InvalidArgumentError, "an element at least"),
        (lambda x, w: nn.conv2d(x, w, 1, "same"), InvalidArgumentError, "write 'SAME'"),
        (lambda x, w: nn.conv2d(x, w, 1, "FULL"), InvalidArgumentError, "'FULL'"),
        (lambda x, w: nn.conv2d(x, w, 1, None), InvalidTypeError, "list of pairs"),
        (lambda x, w: nn.conv2d(x, w, 1, [[1, 1], [1, 1]]), InvalidArgumentError, "each of 4 axes"),
        (
            lambda x, w: nn.conv2d(x, w, 1, [[0, 0], [1, -1], [0, 0], [0, 0]]),
            InvalidArgumentError,
            "not negative",
        ),
        (
            lambda x, w: nn.conv2d(x, w, 1, [[1, 0], [1, 1], [0, 0], [0, 0]]),
            InvalidArgumentError,
            "batch and the channels",
        ),
        (lambda x, w: nn.conv2d(x, w, 0, "SAME"), InvalidArgumentError, "positive"),
        (lambda x, w: nn.conv2d(x, w, [1, 2, 3], "SAME"), InvalidArgumentError, "1 or 2 or 4"),
        (lambda x, w: nn.conv2d(x, w, [2, 1, 1, 1], "SAME"), InvalidArgumentError, "the batch"),
        (lambda x, w: nn.conv2d(x, w, 1.5, "SAME"), InvalidTypeError, "made of ints, not 1.5"),
        (lambda x, w: nn.conv2d(x, w, fb.constant(1), "SAME"), InvalidTypeError, "is fixed"),
        (lambda x, w: nn.conv2d(x, w, 1, "SAME", "NCHW"), InvalidArgumentError, "input's 5"),
        (lambda x, w: nn.conv2d(x, w, 1, "SAME", "NDHWC"), InvalidArgumentError, "over 3 dim"),
        (lambda x, w: nn.conv2d(x, w, 1, "SAME", None), InvalidArgumentError, "not None"),
        (
            lambda x, w: nn.conv2d(x, w, 1, "SAME", "channels_first"),
            InvalidArgumentError,
            "of images it is 'NCHW'",
        ),
        (
            lambda x, w: nn.convolution(x, w, "SAME", data_format="NCW"),
            InvalidArgumentError,
            "'NHWC' or 'NCHW', not 'NCW'",
        ),
        (
            lambda x, w: nn.max_pool_with_argmax(x, 2, 2, "SAME", "NCHW"),
            UnimplementedError,
            r"\[0, 2, 3, 1\]",
        ),
        (lambda x, w: nn.conv2d(x, w, 1, "SAME", "CHWN"), InvalidArgumentError, "'CHWN'"),
        (lambda x, w: nn.conv2d(x, fb.cast(w, fb.float32), 1, "SAME"), InvalidTypeError, "float32"),
        (
            lambda x, w: nn.conv2d_transpose(x, w, [2, 5, 6, 3], 1),
            InvalidArgumentError,
            "'out_backprop' has the shape",
        ),
        (
            lambda x, w: nn.separable_conv2d(x, w[..., :2], w, 1, "SAME"),
            InvalidArgumentError,
            "1, 1, channels in",
        ),
        (lambda x, w: nn.max_pool(x, 7, 1, "VALID"), InvalidArgumentError, "does not fit the 5"),
        (lambda x, w: nn.max_pool(x[0], 2, 2, "VALID"), InvalidArgumentError, "not for the shape"),
        (
            lambda x, w: nn.max_pool(x, [2, 1, 1, 1], 1, "SAME"),
            InvalidArgumentError,
            "over the batch",
        ),
        (
            lambda x, w: nn.avg_pool(x, 2, 2, [[0, 0], [2, 0], [0, 0], [0, 0]]),
            InvalidArgumentError,
            "hold nothing else",
        ),
        (lambda x, w: nn.pool(x, [2, 2], "SUM", "SAME"), InvalidArgumentError, "'SUM'"),
        (lambda x, w: nn.avg_pool(fb.cast(x, fb.int32), 2, 2, "SAME"), InvalidTypeError, "int32"),
    ],
)
def test_errors_at_construction(build: Any, error: Any, message: str) -> None:
    x, w = fb.placeholder(fb.float64, X), fb.placeholder(fb.float64, W)
    with pytest.raises(error, match=message):
        build(x, w)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x, w, _: nn.conv2d(x, w, 1, "VALID"), "3 channels are not the filters' 2"),
        (lambda x, w, _: nn.depthwise_conv2d(x, w, 1, "VALID"), "3 channels are not"),
        (lambda x, w, _: nn.conv2d(x[0], x, 1, "VALID"), "have 4 dimensions"),
        (lambda x, w, _: nn.max_pool(x, 8, 1, "VALID"), "does not fit the 5"),
        (lambda x, w, _: nn.max_pool(x[0], 2, 1, "VALID"), "for 4 dimensions"),
        (lambda x, w, s: nn.conv2d_transpose(x, x, s, 2), "output has the shape"),
        (lambda x, w, s: nn.conv2d_transpose(x, x, s[1:], 2), "4 dimensions"),
    ],
)
def test_errors_in_the_run(build: Any, message: str) -> None:
    with Graph().as_default():
        x, w = fb.placeholder(fb.float64), fb.placeholder(fb.float64)
        sizes = fb.placeholder(fb.int32)
        y = build(x, w, sizes)
    feeds = {x: np.ones(X), w: np.ones((3, 2, 2, 4)), sizes: [1, 2, 2, 6]}
    with fb.Session(graph=y.graph) as sess, pytest.raises(InvalidArgumentError, match=message):
        sess.run(y, feeds)
