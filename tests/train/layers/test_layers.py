"""Layers make named variables, share those that they are given, and compute what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb

RANDOM = np.random.default_rng(0)


def names() -> list[str]:
    return [v.op.name for v in fb.get_default_graph().variables()]


def value(tensor: Any, feeds: Any = None) -> Any:
    with fb.Session() as sess:
        return sess.run(tensor, feeds)


def test_dense_is_a_product_and_a_bias() -> None:
    x = RANDOM.normal(size=(5, 3)).astype(np.float32)
    w, b = RANDOM.normal(size=(3, 2)).astype(np.float32), np.array([1, 2], np.float32)
    y = fb.layers.dense(
        x,
        2,
        activation=fb.nn.relu,
        kernel_initializer=fb.initializers.constant(w),
        bias_initializer=fb.initializers.constant(b),
        name="layer",
    )
    assert names() == ["layer/kernel", "layer/bias"]
    assert y.op.name == "layer/Relu"
    np.testing.assert_allclose(value(y), np.maximum(x @ w + b, 0), rtol=1e-6)


def test_dense_applies_to_the_last_dimension() -> None:
    x = fb.placeholder(fb.float64, [None, 4, 3])
    y = fb.layers.dense(x, 2, use_bias=False)
    assert y.shape == [None, 4, 2]
    assert y.dtype is fb.float64
    [kernel] = fb.get_default_graph().variables()
    data = RANDOM.normal(size=(5, 4, 3))
    with fb.Session() as sess:
        w, found = sess.run([kernel, y], {x: data})
    np.testing.assert_allclose(found, data @ w)


def test_a_layer_makes_variables_of_its_own_unless_it_is_given_some() -> None:
    x = fb.zeros([1, 3])
    kernel = fb.Variable(fb.ones([3, 2]), name="shared")
    fb.layers.dense(x, 2, kernel=kernel, use_bias=False)
    fb.layers.dense(x, 2, kernel=kernel)
    fb.layers.dense(x, 2)
    assert names() == ["shared", "dense_1/bias", "dense_2/kernel", "dense_2/bias"]


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda x: fb.layers.dense(x, 0), fb.errors.InvalidArgumentError, "not 0"),
        (lambda x: fb.layers.dense(x, True), fb.errors.InvalidArgumentError, "units"),
        (
            lambda x: fb.layers.dense(x, 2, kernel=fb.Variable(fb.zeros([4, 2]))),
            fb.errors.InvalidArgumentError,
            r"\[3, 2\]",
        ),
        (
            lambda x: fb.layers.dense(x, 2, kernel=fb.Variable(np.zeros([3, 2]))),
            fb.errors.InvalidTypeError,
            "float32",
        ),
        (lambda x: fb.layers.dense([[1, 2]], 2), fb.errors.InvalidTypeError, "cast"),
        (
            lambda x: fb.layers.dense(fb.placeholder(fb.float32, [2, None]), 2),
            fb.errors.InvalidArgumentError,
            "last dimension",
        ),
        (lambda x: fb.layers.conv2d(x, 2, 3), fb.errors.InvalidArgumentError, "rank 4"),
        (
            lambda x: fb.layers.conv2d(fb.zeros([1, 8, 8, 3]), 2, (3, 3, 3)),
            fb.errors.InvalidArgumentError,
            "kernel_size",
        ),
        (lambda x: fb.layers.dense(x, 2, colour=1), fb.errors.InvalidTypeError, "colour"),
        (
            lambda x: fb.layers.conv2d(fb.zeros([1, 8, 8, 3]), 2, 3, dilation_rate=2),
            fb.errors.InvalidTypeError,
            "it is called dilations",
        ),
        (
            lambda x: fb.layers.dense(x, 2, kernel_initializer=fb.initializers.ones),
            fb.errors.InvalidTypeError,
            r"fb.initializers.ones\(\)",
        ),
        (
            lambda x: fb.layers.dense(x, 2, kernel_initializer="zeros"),
            fb.errors.InvalidTypeError,
            "fb.initializers.zeros",
        ),
        (
            lambda x: fb.layers.dense(x, 2, use_bias=False, activation="relu"),
            fb.errors.InvalidTypeError,
            "fb.nn.relu",
        ),
        (lambda x: fb.layers.flatten(1.0), fb.errors.InvalidArgumentError, "flatten is applied"),
        (
            lambda x: fb.layers.batch_normalization([1.0, 2.0], True),
            fb.errors.InvalidArgumentError,
            "channels",
        ),
        (
            lambda x: fb.layers.lstm(fb.placeholder(fb.float32, [2, None, 3]), 2, unroll=True),
            fb.errors.InvalidArgumentError,
            "known number of steps",
        ),
        (
            lambda x: fb.layers.batch_normalization(x, axis=2),
            fb.errors.InvalidArgumentError,
            "whose dimension 2 is known",
        ),
        (
            lambda x: fb.layers.batch_normalization(fb.placeholder(fb.float32, [2, None]), axis=1),
            fb.errors.InvalidArgumentError,
            "whose dimension 1 is known",
        ),
        (
            lambda x: fb.layers.dense(fb.placeholder(fb.float32, [None]), 3),
            fb.errors.InvalidArgumentError,
            r"fb.expand_dims\(inputs, 1\)",
        ),
        (
            lambda x: fb.layers.dense(fb.placeholder(fb.float32, [None, None]), 3),
            fb.errors.InvalidArgumentError,
            "where the inputs are made",
        ),
        (
            lambda x: fb.layers.conv2d(x, 3, 3),
            fb.errors.InvalidArgumentError,
            r"\[-1, height, width, channels\]",
        ),
        (
            lambda x: fb.layers.batch_normalization(x, momentum=2),
            fb.errors.InvalidArgumentError,
            "momentum",
        ),
        (
            lambda x: fb.layers.batch_normalization(x, 3),
            fb.errors.InvalidTypeError,
            "training is a bool",
        ),
        (
            lambda x: fb.layers.dropout(x, 0.5, "yes"),
            fb.errors.InvalidTypeError,
            "not 'yes'",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_makes_no_variables(
    build: Any, error: type[Exception], words: str
) -> None:
    x = fb.zeros([2, 3])
    with pytest.raises(error, match=words):
        build(x)
    assert not [n for n in names() if not n.startswith("Variable")]


def test_an_argument_that_no_layer_has_says_which_there_are() -> None:
    with pytest.raises(TypeError, match=r"no argument 'reuse'.* shared by kernel and bias"):
        fb.layers.dense(fb.ones([2, 3]), 2, reuse=True)


def test_padding_needs_no_capitals() -> None:
    x = fb.ones([2, 6, 6, 2])
    for layer in (
        lambda p: fb.layers.conv2d(x, 2, 3, padding=p),
        lambda p: fb.layers.conv2d_transpose(x, 2, 3, padding=p),
        lambda p: fb.layers.separable_conv2d(x, 2, 3, padding=p),
        lambda p: fb.layers.max_pooling2d(x, 3, 1, p),
        lambda p: fb.layers.average_pooling2d(x, 3, 1, p),
        lambda p: fb.layers.conv1d(x[0], 2, 3, padding=p),
        lambda p: fb.layers.max_pooling1d(x[0], 3, 1, p),
        lambda p: fb.layers.average_pooling1d(x[0], 3, 1, p),
        lambda p: fb.layers.conv3d(x[None], 2, [1, 3, 3], padding=p),
        lambda p: fb.layers.max_pooling3d(x[None], (1, 3, 3), 1, p),
        lambda p: fb.layers.average_pooling3d(x[None], (1, 3, 3), 1, p),
    ):
        assert layer("same").shape == layer("SAME").shape
        assert layer("valid").shape == layer("VALID").shape != layer("same").shape


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_convolutions_are_those_of_nn(padding: str) -> None:
    x = RANDOM.normal(size=(2, 9, 8, 3))
    y = fb.layers.conv2d(x, 4, (3, 2), 2, padding, name="c")
    s = fb.layers.separable_conv2d(x, 4, 3, 1, padding, depth_multiplier=2, name="s")
    one = fb.layers.conv1d(x[:, 0], 5, 3, dilations=2, padding=padding, name="o")
    volume = x.reshape(2, 3, 3, 8, 3)
    v = fb.layers.conv3d(volume, 4, (2, 1, 3), (1, 1, 2), padding, name="v")
    graph = fb.get_default_graph()
    w = {v.op.name: v for v in graph.variables()}
    expected = [
        fb.nn.conv2d(x, w["c/kernel"], [2, 2], padding),
        fb.nn.separable_conv2d(x, w["s/depthwise_kernel"], w["s/kernel"], [1, 1, 1, 1], padding),
        fb.nn.conv1d(x[:, 0], w["o/kernel"], 1, padding, dilations=2),
        fb.nn.conv3d(volume, w["v/kernel"], [1, 1, 2], padding),
    ]
    assert w["v/kernel"].shape == [2, 1, 3, 3, 4]
    assert w["c/kernel"].shape == [3, 2, 3, 4]
    assert w["s/depthwise_kernel"].shape == [3, 3, 3, 2]
    with fb.Session() as sess:
        for found, wanted in zip(*sess.run([[y, s, one, v], expected]), strict=True):
            np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("known", [True, False])
def test_a_transposed_convolution_grows_by_its_strides(size: int, stride: int, known: bool) -> None:
    data = RANDOM.normal(size=(2, 5, 4, 3))
    x = fb.placeholder(fb.float64, data.shape if known else [None, None, None, 3])
    same = fb.layers.conv2d_transpose(x, 2, size, stride, "SAME")
    valid = fb.layers.conv2d_transpose(x, 2, size, stride, "VALID")
    with fb.Session() as sess:
        a, b = sess.run([same, valid], {x: data})
    assert a.shape == (2, 5 * stride, 4 * stride, 2)
    more = max(size - stride, 0)
    assert b.shape == (2, 5 * stride + more, 4 * stride + more, 2)
    if known:
        assert (same.shape, valid.shape) == (a.shape, b.shape)


def test_pooling_is_that_of_nn() -> None:
    x = RANDOM.normal(size=(2, 6, 6, 3))
    with fb.Session() as sess:
        for layer, plain in (
            (fb.layers.max_pooling2d, fb.nn.max_pool),
            (fb.layers.average_pooling2d, fb.nn.avg_pool),
        ):
            found, wanted = sess.run([layer(x, 3, 2, "SAME"), plain(x, 3, 2, "SAME")])
            np.testing.assert_array_equal(found, wanted)
        for layer, plain in (
            (fb.layers.max_pooling3d, fb.nn.max_pool3d),
            (fb.layers.average_pooling3d, fb.nn.avg_pool3d),
        ):
            how = [(2, 1, 3), (1, 1, 2), "VALID"]
            found, wanted = sess.run([layer(x[None], *how), plain(x[None], *how)])
            np.testing.assert_array_equal(found, wanted)
        assert sess.run(fb.layers.max_pooling1d(x[0], 2, 2)).shape == (6, 3, 3)
        assert sess.run(fb.layers.average_pooling1d(x[0], 2, 2)).shape == (6, 3, 3)


@pytest.mark.parametrize("shape", [[2, 9, 8, 3], [None, None, None, 3]])
def test_channels_may_come_first(shape: Any) -> None:
    """Layers have variables of the same shapes then, and results of the other order."""
    value = RANDOM.normal(size=(2, 9, 8, 3))
    last = fb.placeholder(fb.float64, shape)
    first = fb.placeholder(fb.float64, [shape[0], 3, *shape[1:3]])
    data = {last: value, first: value.transpose(0, 3, 1, 2)}
    layers = fb.layers
    shared = {"kernel": RANDOM.normal(size=(3, 2, 3, 4)), "bias": RANDOM.normal(size=4)}
    turned = {**shared, "kernel": RANDOM.normal(size=(3, 2, 4, 3))}
    mixing = {"kernel": RANDOM.normal(size=(1, 1, 3, 4)), "bias": shared["bias"]}
    depthwise = RANDOM.normal(size=(3, 2, 3, 1))

    def built(x: Any, how: str) -> list[Any]:
        size = (3, 2)
        return [
            layers.conv2d(x, 4, size, 2, "SAME", data_format=how, **constants(shared)),
            layers.conv2d_transpose(x, 4, size, (2, 1), data_format=how, **constants(turned)),
            layers.separable_conv2d(
                x,
                4,
                size,
                depthwise_kernel=fb.constant(depthwise),
                data_format=how,
                **constants(mixing),
            ),
            layers.max_pooling2d(x, 2, (2, 1), data_format=how),
            layers.average_pooling2d(x, 2, (2, 1), data_format=how),
        ]

    def constants(values: Any) -> Any:
        return {name: fb.constant(value) for name, value in values.items()}

    wanted, found = built(last, "NHWC"), built(first, "NCHW")
    for y, like in zip(found, wanted, strict=True):
        assert y.shape.as_list() == [like.shape.as_list()[axis] for axis in (0, 3, 1, 2)]
    with fb.Session() as sess:
        for y, like in zip(*sess.run([found, wanted], data), strict=True):
            np.testing.assert_allclose(y, like.transpose(0, 3, 1, 2))
    made = layers.conv2d(first, 5, 3, data_format="NCHW", name="made")
    assert made.shape[1] == 5
    variables = {v.op.name: v.shape for v in fb.get_default_graph().variables()}
    assert variables == {"made/kernel": [3, 3, 3, 5], "made/bias": [5]}
    with pytest.raises(fb.errors.InvalidArgumentError, match="dimension 1 is known"):
        layers.conv2d(fb.placeholder(fb.float32, [None, None, 8, 8]), 5, 3, data_format="NCHW")


@pytest.mark.parametrize("shape", [[None, 2, 3], [4, 2, 3], [4, None, 3], None, [None, 0, 3], [4]])
def test_flatten_keeps_the_first_dimension(shape: Any) -> None:
    x = fb.placeholder(fb.float32, shape)
    y = fb.layers.flatten(x)
    data = np.zeros([4 if d is None else d for d in shape or [4, 2, 3]], np.float32)
    found = value(y, {x: data})
    assert found.shape == (4, data[0].size)
    assert y.shape.is_compatible_with(found.shape)


def test_dropout_acts_only_while_training() -> None:
    x = np.ones([1000], np.float32)
    training = fb.placeholder(fb.bool, [])
    y = fb.layers.dropout(x, 0.25, training, seed=1)
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(y, {training: False}), x)
        dropped = sess.run(y, {training: True})
    assert set(np.round(dropped, 5)) == {0.0, np.float32(1.33333)}
    assert 150 < (dropped == 0).sum() < 350
    np.testing.assert_array_equal(value(fb.layers.dropout(x, 0.25)), x)
    assert (value(fb.layers.dropout(x, 0.25, training=True)) == 0).any()


def test_an_embedding_reads_rows() -> None:
    ids = fb.placeholder(fb.int32, [None, 2])
    y = fb.layers.embedding(ids, 10, 4)
    assert y.shape == [None, 2, 4]
    [table] = fb.get_default_graph().variables()
    loss = fb.reduce_sum(y)
    [gradient] = fb.gradients(loss, [table])
    assert isinstance(gradient, fb.IndexedSlices)
    with fb.Session() as sess:
        rows, found = sess.run([table, y], {ids: [[1, 9]]})
    np.testing.assert_array_equal(found, rows[[[1, 9]]])


# Normalisation


def normalized(x: Any, axis: Any, epsilon: float) -> Any:
    mean, variance = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon)


@pytest.mark.parametrize("shape", [(16, 3), (4, 5, 3), (4, 3, 2, 3), (2, 2, 2, 2, 3)])
@pytest.mark.parametrize("in_run", [True, False])
def test_batch_normalization(shape: tuple[int, ...], in_run: bool) -> None:
    data = RANDOM.normal(3, 2, shape)
    x = fb.placeholder(fb.float64, [None, *shape[1:]])
    flag = fb.placeholder_with_default(True, [])
    training = flag if in_run else True
    y = fb.layers.batch_normalization(x, training, momentum=0.9, name="bn")
    loss = fb.reduce_sum(fb.square(y))
    train = fb.train.GradientDescentOptimizer(0.0).minimize(loss)
    axes = tuple(range(len(shape) - 1))
    count = data[..., 0].size
    averages = ["bn/moving_mean", "bn/moving_variance"]
    variables = {v.op.name: v for v in fb.get_default_graph().variables()}
    with fb.Session() as sess:
        found, _ = sess.run([y, train], {x: data})
        np.testing.assert_allclose(found, normalized(data, axes, 1e-3), rtol=1e-9, atol=1e-9)
        mean, variance = sess.run([variables[n] for n in averages])
        np.testing.assert_allclose(mean, 0.1 * data.mean(axes))
        unbiased = data.var(axes) * count / (count - 1)
        np.testing.assert_allclose(variance, 0.9 + 0.1 * unbiased)
        # A run without the optimizer leaves the averages alone.
        sess.run(y, {x: data})
        np.testing.assert_array_equal(sess.run(variables[averages[0]]), mean)
        if in_run:
            found, _ = sess.run([y, train], {x: data, flag: False})
            np.testing.assert_allclose(found, (data - mean) / np.sqrt(variance + 1e-3))
            np.testing.assert_array_equal(sess.run(variables[averages[0]]), mean)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("training", [True, False])
def test_batch_normalization_of_channels_elsewhere(axis: int, training: bool) -> None:
    data = RANDOM.normal(3, 2, (3, 4, 5))
    x = fb.placeholder(fb.float64, [d if k == axis % 3 else None for k, d in enumerate((3, 4, 5))])
    factors = fb.Variable(np.linspace(0.5, 2.0, data.shape[axis]))
    found = fb.layers.batch_normalization(x, training, gamma=factors, axis=axis, name="bn")
    moved = np.moveaxis(data, axis, -1)
    plain = fb.layers.batch_normalization(moved, training, gamma=factors, name="plain")
    assert "bn/moving_mean" in names()
    assert found.shape[axis] == data.shape[axis]
    slopes = [fb.gradients(fb.reduce_sum(y * y * y), [factors])[0] for y in (found, plain)]
    with fb.Session() as sess:
        got, wanted, (slope, expected) = sess.run([found, plain, slopes], {x: data})
    np.testing.assert_allclose(got, np.moveaxis(wanted, -1, axis), rtol=1e-12)
    np.testing.assert_allclose(slope, expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [fb.float16, fb.bfloat16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("in_run", [False, True])
def test_averages_of_small_floats_come_to_the_end(dtype: fb.DType, in_run: bool) -> None:
    x = fb.placeholder(dtype, [None, 2])
    training = fb.placeholder_with_default(True, []) if in_run else True
    y = fb.layers.batch_normalization(x, training=training)
    graph = fb.get_default_graph()
    assert {v.dtype for v in graph.variables()} == {fb.float32}
    assert y.dtype is dtype
    batch = np.array([[5.0, -1.0], [8.0, 3.0]])
    with fb.Session() as sess:
        for _ in range(1500):
            sess.run(graph.updates(of=y), {x: batch})
        mean, variance = sess.run(graph.variables(trainable=False))
        result = sess.run(y, {x: batch})
    np.testing.assert_allclose(mean, [6.5, 1.0], rtol=1e-3)
    np.testing.assert_allclose(variance, [4.5, 8.0], rtol=1e-3)
    np.testing.assert_allclose(result.astype(np.float32), [[-1, -1], [1, 1]], atol=0.01)


def test_a_window_may_be_a_part_of_a_shape() -> None:
    x = fb.zeros([5, 7, 9, 4])
    y = fb.layers.conv2d(x, 2, x.shape[1:3])
    assert y.shape == [5, 1, 1, 2]


def test_batch_normalization_by_its_averages_has_no_updates() -> None:
    y = fb.layers.batch_normalization(fb.ones([4, 3]), training=False)
    assert fb.get_default_graph().updates(fb.reduce_sum(y)) == []
    np.testing.assert_allclose(value(y), np.full([4, 3], 1 / np.sqrt(1 + 1e-3)), rtol=1e-6)


def test_values_that_are_not_finite_do_not_poison_averages_that_are_not_trained() -> None:
    x = fb.placeholder(fb.float32, [None, 2])
    training = fb.placeholder(fb.bool, [])
    y = fb.layers.batch_normalization(x, training, name="bn")
    train = fb.train.GradientDescentOptimizer(0.0).minimize(fb.reduce_sum(y))
    mean = next(v for v in fb.get_default_graph().variables() if "moving_mean" in v.op.name)
    with fb.Session() as sess:
        sess.run(train, {x: [[np.inf, np.nan]], training: False})
        np.testing.assert_array_equal(sess.run(mean), [0, 0])


def test_batch_normalization_without_scale_and_offset() -> None:
    fb.layers.batch_normalization(fb.ones([4, 3]), True, center=False, scale=False)
    assert [n.rpartition("/")[2] for n in names()] == ["moving_mean", "moving_variance"]


def test_layer_normalization() -> None:
    data = RANDOM.normal(5, 3, (4, 6, 8))
    y = fb.layers.layer_normalization(data)
    np.testing.assert_allclose(value(y), normalized(data, -1, 1e-5), rtol=1e-8)


# Initializers


def test_an_initializer_may_give_an_array() -> None:
    y = fb.layers.dense(fb.ones([1, 3]), 2, kernel_initializer=lambda shape, _: np.ones(shape))
    assert value(y).tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize("option", ["kernel_initializer", "bias_initializer"])
def test_zero_is_no_initializer(option: str) -> None:
    with pytest.raises(TypeError, match=r"an initializer is a function .*, not 0"):
        fb.layers.dense(fb.ones([1, 3]), 2, **{option: 0})


def test_an_initializer_gives_the_wanted_shape() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"gamma has the shape \[3\] here"):
        fb.layers.batch_normalization(
            fb.ones([4, 3]), gamma_initializer=lambda _, dtype: fb.ones([1], dtype)
        )


# Recurrence


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def test_lstm_step_by_step() -> None:
    data = RANDOM.normal(size=(3, 5, 4))
    outputs, (c_end, h_end) = fb.layers.lstm(data, 2, sequence_length=[5, 2, 0], name="lstm")
    with fb.Session() as sess:
        kernel, bias, found, c_found, h_found = sess.run(
            [*fb.get_default_graph().variables(), outputs, c_end, h_end]
        )
    c, h = np.zeros((3, 2)), np.zeros((3, 2))
    for step in range(5):
        i, j, f, o = np.split(np.concatenate([data[:, step], h], 1) @ kernel + bias, 4, 1)
        next_c = c * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
        next_h = np.tanh(next_c) * sigmoid(o)
        alive = (step < np.array([5, 2, 0]))[:, None]
        np.testing.assert_allclose(found[:, step], np.where(alive, next_h, 0), atol=1e-12)
        c, h = np.where(alive, next_c, c), np.where(alive, next_h, h)
    np.testing.assert_allclose(c_found, c, atol=1e-12)
    np.testing.assert_allclose(h_found, h, atol=1e-12)


def test_gru_step_by_step() -> None:
    data = RANDOM.normal(size=(3, 4, 4))
    outputs, state = fb.layers.gru(data, 2)
    assert names() == [
        "gru/gates/kernel", "gru/gates/bias", "gru/candidate/kernel", "gru/candidate/bias",
    ]  # fmt: skip
    with fb.Session() as sess:
        gates, offset, candidate, bias, found, end = sess.run(
            [*fb.get_default_graph().variables(), outputs, state]
        )
    h = np.zeros((3, 2))
    for step in range(4):
        x = data[:, step]
        r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ gates + offset), 2, 1)
        new = np.tanh(np.concatenate([x, r * h], 1) @ candidate + bias)
        h = u * h + (1 - u) * new
        np.testing.assert_allclose(found[:, step], h, atol=1e-12)
    np.testing.assert_allclose(end, h, atol=1e-12)


# Penalties


def test_penalties_belong_to_the_losses_of_their_variables() -> None:
    x = fb.ones([2, 3])
    ones = fb.initializers.ones()
    l2 = fb.regularizers.l2(0.5)
    a = fb.layers.dense(x, 2, kernel_initializer=ones, kernel_regularizer=l2)
    b = fb.layers.dense(
        x, 2, kernel_initializer=ones, kernel_regularizer=fb.regularizers.l1_l2(1.0, 0.25)
    )
    with fb.Session() as sess:
        assert sess.run(fb.layers.regularization_loss(a)) == 3.0
        assert sess.run(fb.layers.regularization_loss(b)) == 6.0 + 1.5
        assert sess.run(fb.layers.regularization_loss(fb.reduce_sum(a) + fb.reduce_sum(b))) == 10.5
        assert sess.run(fb.layers.regularization_loss(x)) == 0.0


def test_penalties_of_layers_in_loops_and_branches() -> None:
    def layer(x: fb.Tensor) -> fb.Tensor:
        ones = fb.initializers.ones()
        l2 = fb.regularizers.l2(0.5)
        return fb.layers.dense(x, 3, kernel_initializer=ones, kernel_regularizer=l2)

    x = fb.placeholder(fb.float32, [None, 3])
    _, looped = fb.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, layer(y)), (0, x))
    branched = fb.cond(x[0, 0] > 0, lambda: layer(x), lambda: x)
    with fb.Session() as sess:
        assert sess.run(fb.layers.regularization_loss(looped)) == 4.5
        assert sess.run(fb.layers.regularization_loss(branched)) == 4.5
        assert sess.run(fb.layers.regularization_loss(looped + branched)) == 9.0


def test_a_penalty_is_added_once() -> None:
    y = fb.layers.dense(fb.ones([1, 1]), 1, kernel_regularizer=fb.regularizers.l2(1.0))
    loss = fb.reduce_sum(y)
    total = loss + fb.layers.regularization_loss(loss)
    with fb.Session() as sess:
        assert sess.run(fb.layers.regularization_loss(total)) == 0.0


def test_a_penalty_has_gradients_and_survives_storing() -> None:
    y = fb.layers.dense(fb.ones([1, 3]), 2, kernel_regularizer=fb.regularizers.l2(0.5))
    kernel = fb.get_default_graph().variables()[0]
    [gradient] = fb.gradients(fb.layers.regularization_loss(y), [kernel])
    with fb.Session() as sess:
        np.testing.assert_allclose(*sess.run([gradient, kernel]))
    copy = fb.Graph.from_bytes(y.graph.to_bytes())
    loss = fb.layers.regularization_loss(copy.get_tensor_by_name(y.name))
    with fb.Session(graph=copy) as sess:
        found, weights = sess.run([loss, copy.variables()[0]])
    np.testing.assert_allclose(found, 0.5 * np.square(weights).sum(), rtol=1e-6)


def _at_most(limit: float) -> Any:
    return lambda value: fb.minimum(value, limit)


def test_constraints_hold_after_each_step() -> None:
    x = fb.placeholder(fb.float32, [None, 4, 4, 3], name="x")
    bounds = {"kernel_constraint": _at_most(-0.5), "bias_constraint": _at_most(-1.0)}
    h = fb.layers.conv2d(x, 2, 3, **bounds)
    h = fb.layers.separable_conv2d(h, 2, 1, **bounds)
    limits = {"beta_constraint": _at_most(-2.0), "gamma_constraint": _at_most(-3.0)}
    h = fb.layers.batch_normalization(h, training=True, **limits)
    h = fb.layers.layer_normalization(fb.layers.flatten(h), **limits)
    y = fb.layers.dense(h, 1, **bounds)
    train = fb.train.GradientDescentOptimizer(0.0).minimize(fb.reduce_sum(y))
    kept = {v.op.name: v for v in fb.get_default_graph().variables() if v.constraint is not None}
    assert len(kept) == 10
    with fb.Session() as sess:
        sess.run(train, {x: np.ones([2, 4, 4, 3])})
        values = sess.run(kept)
    for name, value in values.items():
        limit = {"kernel": -0.5, "bias": -1.0, "beta": -2.0, "gamma": -3.0}[name.split("/")[-1]]
        assert value.max() == limit, name


def test_a_shared_variable_has_its_constraint_already() -> None:
    x, keep = fb.zeros([2, 3]), _at_most(1.0)
    own = fb.Variable(fb.zeros([3, 4]), constraint=keep)
    fb.layers.dense(x, 4, kernel=own, kernel_constraint=keep)
    with pytest.raises(fb.errors.InvalidArgumentError, match="has its constraint from where"):
        fb.layers.dense(x, 4, kernel=own, kernel_constraint=_at_most(2.0))
    with pytest.raises(fb.errors.InvalidTypeError, match=r"give depthwise_kernel=fb\.Variable"):
        fb.layers.separable_conv2d(fb.zeros([1, 4, 4, 3]), 2, 1, depthwise_constraint=keep)
