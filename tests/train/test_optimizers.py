"""Optimizers against the formulas that they implement, in NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.train.formulas import Formula

OPTIMIZERS: dict[str, Callable[[Any], fb.train.Optimizer]] = {
    "descent": lambda rate: fb.train.GradientDescentOptimizer(rate),
    "momentum": lambda rate: fb.train.MomentumOptimizer(rate, 0.9),
    "adagrad": lambda rate: fb.train.AdagradOptimizer(rate),
    "adam": lambda rate: fb.train.AdamOptimizer(rate),
    "adam lazy": lambda rate: fb.train.AdamOptimizer(rate, lazy=True),
    "adamw": lambda rate: fb.train.AdamWOptimizer(0.01, rate),
    "adafactor": lambda rate: fb.train.AdafactorOptimizer(rate),
    "rmsprop": lambda rate: fb.train.RMSPropOptimizer(rate),
    "adadelta": lambda rate: fb.train.AdadeltaOptimizer(rate),
    "ftrl": lambda rate: fb.train.FtrlOptimizer(rate),
    "proximal adagrad": lambda rate: fb.train.ProximalAdagradOptimizer(rate),
    "proximal": lambda rate: fb.train.ProximalGradientDescentOptimizer(rate),
}

EACH = pytest.mark.parametrize("made", OPTIMIZERS.values(), ids=OPTIMIZERS)

RATES: dict[str, Callable[[], Any]] = {
    "float32 tensor": lambda: fb.constant(0.05),
    "float64 tensor": lambda: fb.constant(0.05, fb.float64),
    "variable": lambda: fb.Variable(0.05, trainable=False),
    "NumPy number": lambda: np.float64(0.05),
}


@pytest.mark.parametrize("rate", RATES)
@EACH
def test_learning_rate_may_have_any_form(made: Any, rate: str) -> None:
    values = []
    for given in (RATES[rate](), 0.05):
        x = fb.Variable([[1.0, -2.0], [3.0, 0.5]])
        train = made(given).minimize(fb.reduce_sum(fb.square(x)), var_list=[x])
        with fb.Session() as sess:
            for _ in range(5):
                sess.run(train)
            values.append(sess.run(x))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)


def test_learning_rate_variable_is_read_at_each_step() -> None:
    x, rate = fb.Variable(0.0), fb.Variable(1.0, trainable=False)
    train = fb.train.GradientDescentOptimizer(rate).minimize(x * 1.0)
    with fb.Session() as sess:
        sess.run(train)
        sess.run(fb.assign(rate, 10.0))
        sess.run(train)
        assert sess.run(x) == -11.0


def test_variable_read_densely_and_by_rows_gets_both_gradients() -> None:
    x = fb.Variable(np.ones((3, 2)))
    loss = fb.reduce_sum(x * 2.0) + fb.reduce_sum(fb.gather(x, [1]) * 3.0)
    with fb.control_dependencies([loss]):
        loss += fb.reduce_sum(fb.square(fb.identity(x)))
    [gradient] = fb.gradients(loss, [x])
    with fb.Session() as sess:
        dense = fb.convert_to_tensor(gradient)
        np.testing.assert_array_equal(sess.run(dense), [[4, 4], [7, 7], [4, 4]])


def test_learning_rate_may_depend_on_the_step() -> None:
    step = fb.Variable(0, trainable=False, name="step")
    x = fb.Variable(0.0)
    rate = 1.0 / fb.cast(step + 1, fb.float32)
    train = fb.train.GradientDescentOptimizer(rate).minimize(x * 1.0, global_step=step)
    with fb.Session() as sess:
        for i in range(1, 6):
            sess.run(train)
            assert sess.run(step) == i
        assert sess.run(x) == pytest.approx(-sum(1 / i for i in range(1, 6)))


@pytest.mark.parametrize("dtype", [fb.int32, fb.int64, fb.float32], ids=lambda d: d.name)
def test_global_step_is_counted_after_the_updates(dtype: fb.DType) -> None:
    step = fb.Variable(np.zeros((), dtype.numpy), trainable=False)
    x = fb.Variable(1.0)
    train = fb.train.AdamOptimizer(0.1).minimize(x * x, step)
    with fb.control_dependencies([train]):
        after = [fb.identity(step), fb.identity(x)]
    with fb.Session() as sess:
        count, value = sess.run(after)
        assert count == 1
        assert value == pytest.approx(0.9, abs=1e-5)


def test_compute_and_apply_are_minimize() -> None:
    x, y = fb.Variable([1.0, 2.0]), fb.Variable(3.0)
    optimizer = fb.train.GradientDescentOptimizer(0.1)
    pairs = optimizer.compute_gradients(fb.reduce_sum(x) * y)
    assert [v for _, v in pairs] == [x, y]
    clipped = [(fb.minimum(g, 2.0), v) for g, v in pairs]
    with fb.Session() as sess:
        sess.run(optimizer.apply_gradients(clipped))
        np.testing.assert_allclose(sess.run(x), [0.8, 1.8], rtol=1e-6)
        assert sess.run(y) == pytest.approx(2.8)


def test_only_listed_variables_change() -> None:
    x, y, z = fb.Variable(1.0), fb.Variable(1.0), fb.Variable(1.0, trainable=False)
    loss = x * y * z
    optimizer = fb.train.GradientDescentOptimizer(0.5)
    some, default = optimizer.minimize(loss, var_list=[y]), optimizer.minimize(loss)
    listed = optimizer.minimize(loss, var_list=[z])
    with fb.Session() as sess:
        sess.run(some)
        assert sess.run([x, y, z]) == [1.0, 0.5, 1.0]
        sess.run(default)
        assert sess.run([x, y, z]) == [0.75, 0.0, 1.0]
        sess.run(listed)
        assert sess.run([x, y, z]) == [0.75, 0.0, 1.0]


def test_variables_without_gradient_are_left_alone() -> None:
    x, y = fb.Variable(1.0), fb.Variable(1.0)
    optimizer = fb.train.AdamOptimizer(0.1)
    pairs = optimizer.compute_gradients(x * 2.0)
    assert pairs[1] == (None, y)
    train = optimizer.apply_gradients(pairs)
    assert optimizer.get_slot(y, "m") is None
    with fb.Session() as sess:
        sess.run(train)
        assert sess.run(y) == 1.0


def test_one_step_updates_all_variables_from_the_values_before_it() -> None:
    x, y = fb.Variable(2.0), fb.Variable(3.0)
    train = fb.train.GradientDescentOptimizer(1.0).minimize(x * y)
    with fb.Session() as sess:
        assert sess.run([train, x, y]) == [None, 2.0, 3.0]
        assert sess.run([x, y]) == [-1.0, 1.0]


# Slots


def test_slots_are_non_trainable_colocated_and_zero() -> None:
    with fb.device("/device:cpu:0"):
        x = fb.Variable(np.ones((2, 3)), name="x")
    loss = fb.reduce_sum(x * x)
    optimizers = [fb.train.MomentumOptimizer(0.1, 0.9), fb.train.AdamOptimizer()]
    for optimizer, names in zip(optimizers, (["momentum"], ["m", "v"]), strict=True):
        assert optimizer.get_slot_names() == []
        optimizer.minimize(loss)
        assert optimizer.get_slot_names() == names
        for name in names:
            slot = optimizer.get_slot(x, name)
            assert slot is not None
            assert not slot.trainable
            assert (slot.dtype, slot.shape) == (x.dtype, x.shape)
            assert x.op in slot.op.colocation
            assert slot.op.name == f"x/{optimizer.name}/{name}"
            with fb.Session() as sess:
                np.testing.assert_array_equal(sess.run(slot), np.zeros((2, 3)))
    assert fb.get_default_graph().variables(trainable=True) == [x]
    assert optimizers[0].get_slot(x, "m") is None
    assert optimizers[0].get_slot(fb.Variable(1.0), "momentum") is None


def test_slots_draw_no_random_numbers() -> None:
    start = fb.random_uniform([4], seed=1)
    with fb.Session() as sess:
        expected = [sess.run(start) for _ in range(2)]
    for made in (
        lambda n: fb.train.MomentumOptimizer(0.0, 0.0, name=n),
        lambda n: fb.train.AdamOptimizer(0.0, name=n),
    ):
        x = fb.Variable(start)
        train = made("slots").minimize(fb.reduce_sum(x))
        with fb.Session() as sess:
            sess.run(train)
            np.testing.assert_array_equal(sess.run(x), expected[0])
            np.testing.assert_array_equal(sess.run(start), expected[1])


def test_slots_of_a_variable_of_unknown_shape() -> None:
    size = fb.placeholder(fb.int32, [1])
    calls: list[int] = []

    def initial(n: Any) -> Any:
        calls.append(1)
        return np.ones(n, np.float32)

    x = fb.Variable(fb.py_func(initial, [size], fb.float32))
    optimizer = fb.train.MomentumOptimizer(0.5, 0.5)
    train = optimizer.minimize(fb.reduce_sum(x))
    with fb.Session() as sess:
        sess.run(x, {size: [3]})
        for _ in range(2):
            sess.run(train)  # Nothing needs the size any more.
        np.testing.assert_allclose(sess.run(x), np.full(3, 1 - 0.5 - 0.75))
    assert len(calls) == 1


def test_minimize_twice_shares_the_slots() -> None:
    x = fb.Variable(1.0)
    optimizer = fb.train.MomentumOptimizer(0.1, 0.5)
    first, second = optimizer.minimize(x * 1.0), optimizer.minimize(x * 3.0)
    assert len(fb.get_default_graph().variables()) == 2
    with fb.Session() as sess:
        sess.run(first)
        assert sess.run(optimizer.get_slot(x, "momentum")) == 1.0
        sess.run(second)
        assert sess.run(optimizer.get_slot(x, "momentum")) == 3.5
        assert sess.run(x) == pytest.approx(1 - 0.1 - 0.35)


def test_two_optimizers_keep_apart() -> None:
    x = fb.Variable(1.0)
    one, two = fb.train.MomentumOptimizer(0.1, 0.9), fb.train.MomentumOptimizer(0.1, 0.9)
    one.minimize(x * 1.0), two.minimize(x * 1.0)
    assert one.get_slot(x, "momentum") is not two.get_slot(x, "momentum")


def test_adam_s_first_steps_are_as_long_as_its_variables_can_tell() -> None:
    x = fb.Variable(fb.zeros([3]))
    train = fb.train.AdamOptimizer(0.125, epsilon=0.0).apply_gradients([([1.0, -2.0, 3.0], x)])
    with fb.Session() as sess:
        for k in range(1, 9):
            sess.run(train)
            # Gradients that do not change make steps of the learning rate.
            expected = [-0.125 * k, 0.125 * k, -0.125 * k]
            np.testing.assert_allclose(sess.run(x), expected, rtol=1e-6)


def test_adam_with_variables_of_two_dtypes() -> None:
    x, y = fb.Variable(np.float32(1.0)), fb.Variable(np.float64(1.0))
    optimizer = fb.train.AdamOptimizer(0.1)
    train = optimizer.minimize(x * x + fb.cast(y * y, fb.float32))
    expected = Formula(np.array(1.0), "AdamOptimizer", {"learning_rate": 0.1})
    with fb.Session() as sess:
        for _ in range(10):
            sess.run(train)
            expected.dense(2 * expected.x)
        np.testing.assert_allclose(sess.run(x), expected.x, rtol=1e-4)
        np.testing.assert_allclose(sess.run(y), expected.x, rtol=1e-12)
    assert [v.dtype for v in optimizer.variables() if "power" in v.name] == [fb.float64] * 2


def test_variables_are_all_that_is_kept() -> None:
    x = fb.Variable([1.0], name="x")
    optimizer = fb.train.AdamOptimizer()
    assert optimizer.variables() == []
    optimizer.minimize(fb.reduce_sum(x))
    names = ["Adam/beta1_power", "Adam/beta2_power", "x/Adam/m", "x/Adam/v"]
    assert [v.op.name for v in optimizer.variables()] == names
    with fb.Session() as sess:
        assert sess.run("Adam/beta1_power:0") == 0.9


def test_slots_lie_in_the_containers_of_their_variables_and_ignore_devices_around() -> None:
    with fb.container("shared"):
        x = fb.Variable(1.0, name="x")
    optimizer = fb.train.MomentumOptimizer(0.1, 0.9)
    with fb.container("other"), fb.device("/device:cpu:7"):
        train = optimizer.minimize(x * x)
    slot = optimizer.get_slot(x, "momentum")
    assert slot is not None
    assert (slot.op.container, slot.op.device) == ("shared", "")
    graph = fb.get_default_graph()
    [moved] = [op for op in graph.operations if op.type == "AssignSub"]
    assert (moved.colocation, moved.device) == ((x.op,), "")
    assert train.name == "Momentum"


@EACH
def test_minimize_waits_for_what_it_was_told_to(made: Any) -> None:
    x, count = fb.Variable([[1.0]]), fb.Variable(0, trainable=False)
    loss = fb.reduce_sum(fb.square(x))
    with fb.control_dependencies([fb.assign_add(count, 1)]):
        train = made(0.1).minimize(loss)
    with fb.Session() as sess:
        sess.run(train)
        assert sess.run(count) == 1


@EACH
def test_the_same_optimizer_applied_twice_goes_on(made: Any) -> None:
    """Two operations of one optimizer are two steps of it."""
    x = fb.Variable([[1.0, 2.0]])
    optimizer = made(0.1)
    trains = [optimizer.minimize(fb.reduce_sum(fb.square(x))) for _ in range(2)]
    y = fb.Variable([[1.0, 2.0]])
    other = made(0.1).minimize(fb.reduce_sum(fb.square(y)), var_list=[y])
    count = len(optimizer.variables())
    optimizer.minimize(fb.reduce_sum(x), var_list=[x])
    assert len(optimizer.variables()) == count
    with fb.Session() as sess:
        for _ in range(3):
            for train in trains:
                sess.run(train)
                sess.run(other)
                np.testing.assert_array_equal(sess.run(x), sess.run(y))


def test_grad_loss_scales_the_gradients() -> None:
    x = fb.Variable([1.0, 2.0])
    weights = fb.constant([1.0, 10.0])
    optimizer = fb.train.GradientDescentOptimizer(1.0)
    train = optimizer.minimize(fb.square(x), grad_loss=weights)
    [(gradient, _)] = optimizer.compute_gradients(fb.square(x), grad_loss=weights)
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(gradient), [2.0, 40.0])
        sess.run(train)
        np.testing.assert_array_equal(sess.run(x), [-1.0, -38.0])


def test_ftrl_without_a_start_leaves_zero_where_nothing_pulled() -> None:
    x = fb.Variable([2.0, 3.0])
    step = fb.train.FtrlOptimizer(0.5, initial_accumulator_value=0.0).apply_gradients(
        [(fb.constant([0.0, 1.0]), x)]
    )
    with fb.Session() as sess:
        sess.run(step)
        # accum = [0, 1], linear = [0, 1 - 1 / 0.5 * 3]: nothing over nothing, and 5 over 2.
        np.testing.assert_allclose(sess.run(x), [0.0, 2.5])


@pytest.mark.parametrize("lazy", [False, True])
def test_adamw_decays_the_listed_variables(lazy: bool) -> None:
    x, y = fb.Variable([[2.0], [4.0]]), fb.Variable([2.0])
    optimizer = fb.train.AdamWOptimizer(0.5, 0.0, lazy=lazy, decay_var_list=[x])
    train = optimizer.minimize(fb.reduce_sum(fb.gather(x, [1, 1])) + fb.reduce_sum(y))
    with fb.Session() as sess:
        sess.run(train)
        np.testing.assert_array_equal(sess.run(x), [[2.0 if lazy else 1.0], [2.0]])
        np.testing.assert_array_equal(sess.run(y), [2.0])


def test_adafactor_keeps_rows_and_columns() -> None:
    x, y = fb.Variable(np.ones((2, 3, 4))), fb.Variable(np.ones(5))
    optimizer = fb.train.AdafactorOptimizer()
    optimizer.minimize(fb.reduce_sum(x) + fb.reduce_sum(y))
    kept = {v.op.name: v.shape.as_list() for v in optimizer.variables()}
    assert kept == {
        "Adafactor/step": [],
        "Variable/Adafactor/vc": [2, 4],
        "Variable/Adafactor/vr": [2, 3],
        "Variable_1/Adafactor/v": [5],
    }
    assert optimizer.get_slot_names() == ["v", "vc", "vr"]


@pytest.mark.parametrize("lengths", [[3, 4], [None, 4], [None, None]], ids=str)
def test_adafactor_with_variables_of_unknown_lengths(lengths: list[int | None]) -> None:
    size = fb.placeholder(fb.int32, lengths and [2])
    dims = [n if n is not None else size[i] for i, n in enumerate(lengths)]
    x = fb.Variable(fb.ones(fb.stack(dims)))
    assert x.shape.as_list() == lengths or x.shape.rank == 2
    train = fb.train.AdafactorOptimizer(0.1).minimize(fb.reduce_sum(fb.square(x)))
    with fb.Session() as sess:
        sess.run(x, {size: [3, 4]})
        sess.run(train)
        np.testing.assert_allclose(sess.run(x), np.full((3, 4), 0.9), rtol=1e-6)


def test_built_inside_scopes_it_waits_and_its_slots_do_not() -> None:
    x = fb.Variable(1.0)
    mean = fb.Variable(0.0, trainable=False)
    batch = fb.placeholder(fb.float32, [2])
    loss = x * x
    with fb.name_scope("outer"), fb.control_dependencies([fb.assign(mean, fb.reduce_mean(batch))]):
        optimizer = fb.train.AdamOptimizer(0.1)
        train = optimizer.minimize(loss, name="go")
    assert train.name == "outer/go"
    slot = optimizer.get_slot(x, "m")
    assert slot is not None
    with fb.Session() as sess:
        sess.run(slot.initializer)
        sess.run(train, {batch: [4.0, 6.0]})
        assert sess.run(mean) == 5.0
        assert sess.run(x) < 1.0


# Errors


def test_loss_without_variables_is_an_error() -> None:
    optimizer = fb.train.GradientDescentOptimizer(0.1)
    with pytest.raises(fb.errors.InvalidArgumentError, match="there are none"):
        optimizer.minimize(fb.constant(1.0) * 2.0)
    fb.Variable(1.0, name="lonely")
    with pytest.raises(fb.errors.InvalidArgumentError, match="'lonely'"):
        optimizer.minimize(fb.constant(1.0) * 2.0)


@pytest.mark.parametrize("loss", [3.0, None, "loss", np.ones(3)])
def test_loss_that_is_no_tensor_is_an_error(loss: Any) -> None:
    fb.Variable(1.0)
    with pytest.raises(TypeError, match="loss"):
        fb.train.GradientDescentOptimizer(0.1).minimize(loss)


def test_loss_of_integers_is_an_error() -> None:
    x = fb.Variable(1)
    with pytest.raises(fb.errors.InvalidArgumentError, match="int32"):
        fb.train.GradientDescentOptimizer(0.1).minimize(x * x)


def test_what_is_listed_must_be_variables() -> None:
    x = fb.Variable(1.0)
    with pytest.raises(TypeError, match="var_list holds variables"):
        fb.train.GradientDescentOptimizer(0.1).minimize(x * x, var_list=[x.value])


@pytest.mark.parametrize(
    "pairs",
    [
        lambda x: [x],
        lambda x: [(x.value, x.value)],
        lambda x: [(object(), x)],
        lambda x: [(x.value, x, 3)],
    ],
    ids=["no pair", "no variable", "no tensor", "three"],
)
def test_what_is_applied_must_be_pairs(pairs: Any) -> None:
    with pytest.raises(TypeError):
        fb.train.GradientDescentOptimizer(0.1).apply_gradients(pairs(fb.Variable(1.0)))


@EACH
def test_gradients_that_were_added_up_in_a_variable(made: Any) -> None:
    x, y = fb.Variable([1.0, 2.0]), fb.Variable([1.0, 2.0])
    total = fb.Variable([0.0, 0.0], trainable=False)
    added = [fb.assign_add(total, g) for g in ([0.25, 1.0], [0.5, -3.0])]
    by_variable = made(0.1).apply_gradients([(total, x)])
    by_array = made(0.1).apply_gradients([(np.array([0.75, -2.0]), y)])
    with fb.Session() as sess:
        sess.run(added)
        for _ in range(3):
            sess.run([by_variable, by_array])
        np.testing.assert_array_equal(*sess.run([x, y]))


@pytest.mark.parametrize(
    "gradient",
    [
        lambda: fb.constant(1.0),
        lambda: fb.constant([[1.0, 2.0]]),
        lambda: fb.IndexedSlices(fb.constant([1.0]), fb.constant([0])),
    ],
    ids=["scalar", "row", "rows of scalars"],
)
def test_a_gradient_has_the_shape_of_its_variable(gradient: Any) -> None:
    x = fb.Variable(np.ones((3, 2), np.float32), name="x")
    with pytest.raises(fb.errors.InvalidArgumentError, match="the gradient of 'x' has the shape"):
        fb.train.MomentumOptimizer(0.1, 0.9).apply_gradients([(gradient(), x)])


def test_an_optimizer_lists_what_it_keeps_in_the_default_graph() -> None:
    optimizer = fb.train.MomentumOptimizer(0.01, 0.5)
    for name in ("a", "b"):
        with fb.Graph().as_default():
            optimizer.minimize(fb.square(fb.Variable(1.0, name=name)))
            assert [v.op.name for v in optimizer.variables()] == [f"{name}/Momentum/momentum"]
    assert optimizer.variables() == []


def test_the_loss_may_be_a_variable() -> None:
    x = fb.Variable([1.0, 2.0])
    train = fb.train.GradientDescentOptimizer(0.5).minimize(x)
    with fb.Session() as sess:
        sess.run(train)
        assert sess.run(x).tolist() == [0.5, 1.5]


@pytest.mark.parametrize("dtype", [fb.int32, fb.complex64], ids=lambda dtype: dtype.name)
def test_only_floats_are_trained(dtype: fb.DType) -> None:
    x = fb.Variable(np.ones((), dtype.numpy))
    with pytest.raises(TypeError, match="only floating-point"):
        fb.train.GradientDescentOptimizer(0.1).apply_gradients([(x.value, x)])


def test_a_variable_twice_is_an_error() -> None:
    x = fb.Variable(1.0, name="x")
    with pytest.raises(fb.errors.InvalidArgumentError, match="'x' is listed twice"):
        fb.train.GradientDescentOptimizer(0.1).minimize(x * x, var_list=[x, x])


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("AdagradOptimizer", {"learning_rate": 0.1, "initial_accumulator_value": 0.0}),
        ("AdagradOptimizer", {"learning_rate": 0.1, "initial_accumulator_value": np.nan}),
        ("FtrlOptimizer", {"learning_rate": 0.1, "learning_rate_power": 0.5}),
        ("FtrlOptimizer", {"learning_rate": 0.1, "l1_regularization_strength": -1.0}),
        ("AdamOptimizer", {"beta1": 1.0}),
        ("AdamOptimizer", {"beta2": np.nan}),
        ("AdamWOptimizer", {"weight_decay": 0.1, "beta2": -0.5}),
        ("AdamWOptimizer", {"weight_decay": 0.1, "decay_var_list": [3.0]}),
    ],
)
def test_impossible_hyperparameters_are_errors(kind: str, arguments: Any) -> None:
    with pytest.raises((fb.errors.InvalidArgumentError, TypeError)):
        getattr(fb.train, kind)(**arguments)


def test_adafactor_needs_the_rank() -> None:
    x = fb.Variable(fb.placeholder(fb.float32))
    with pytest.raises(fb.errors.InvalidArgumentError, match="how many dimensions"):
        fb.train.AdafactorOptimizer().apply_gradients([(x.value, x)])


def test_nothing_to_apply_is_an_error() -> None:
    x = fb.Variable(1.0)
    for pairs, said in (([], "there are none"), ([(None, x)], "'Variable'")):
        with pytest.raises(fb.errors.InvalidArgumentError, match=f"no gradient .*{said}"):
            fb.train.GradientDescentOptimizer(0.1).apply_gradients(pairs)


@EACH
def test_learning_rate_of_a_wrong_kind_is_an_error(made: Any) -> None:
    x = fb.Variable(1.0)
    with pytest.raises(fb.errors.InvalidArgumentError):
        made("fast").minimize(x * x)


def test_global_step_must_be_a_variable() -> None:
    x = fb.Variable(1.0)
    with pytest.raises(TypeError, match="variable"):
        fb.train.GradientDescentOptimizer(0.1).minimize(x * x, global_step=3)


def test_variable_of_another_graph_is_an_error() -> None:
    with fb.Graph().as_default():
        other = fb.Variable(1.0)
    x = fb.Variable(1.0)
    with pytest.raises(fb.errors.InvalidArgumentError, match="graph"):
        fb.train.GradientDescentOptimizer(0.1).minimize(x * x, var_list=[other])


def test_imported_graph_trains_on() -> None:
    x = fb.Variable([1.0, -1.0], name="x")
    train = fb.train.AdamOptimizer(0.1).minimize(fb.reduce_sum(x * x), name="train")
    graph = fb.Graph.from_bytes(fb.get_default_graph().to_bytes())
    with fb.Session() as sess, fb.Session(graph) as again:
        for _ in range(5):
            sess.run(train)
            again.run("train")
        np.testing.assert_array_equal(sess.run(x), again.run("x:0"))


# Clipping


@pytest.mark.parametrize("kind", ["dense", "rows"])
@EACH
def test_gradients_clipped_by_their_norm_are_applied(made: Any, kind: str) -> None:
    x = fb.Variable([[1.0, 2.0], [3.0, 4.0]])
    y = fb.Variable([5.0])
    unused = fb.Variable(1.0)
    chosen = x if kind == "dense" else fb.gather(x, [0, 1])
    loss = fb.reduce_sum(fb.square(chosen)) + fb.reduce_sum(y * y)
    optimizer = made(0.1)
    pairs = optimizer.compute_gradients(loss, [x, y, unused])
    clipped, length = fb.clip_by_global_norm([g for g, _ in pairs], 1.0)
    assert type(clipped[0]) is type(pairs[0][0])
    train = optimizer.apply_gradients(zip(clipped, [v for _, v in pairs], strict=True))
    x2, y2 = fb.Variable([[1.0, 2.0], [3.0, 4.0]]), fb.Variable([5.0])
    factor = 1.0 / np.sqrt(4.0 * 55.0)
    scaled = [(2.0 * x2 * factor, x2), (2.0 * y2 * factor, y2)]
    expected = made(0.1).apply_gradients(scaled)
    with fb.Session() as sess:
        assert sess.run(length) == pytest.approx(np.sqrt(4.0 * 55.0))
        sess.run([train, expected])
        np.testing.assert_allclose(sess.run(x), sess.run(x2), rtol=1e-5)
        np.testing.assert_allclose(sess.run(y), sess.run(y2), rtol=1e-5)
        assert sess.run(unused) == 1.0


def test_each_gradient_clipped_by_its_own_norm() -> None:
    x = fb.Variable([3.0, 4.0])
    optimizer = fb.train.GradientDescentOptimizer(1.0)
    [(gradient, _)] = optimizer.compute_gradients(fb.reduce_sum(fb.square(x)) / 2.0)
    train = optimizer.apply_gradients([(fb.clip_by_norm(gradient, 1.0), x)])
    with fb.Session() as sess:
        sess.run(train)
        np.testing.assert_allclose(sess.run(x), [2.4, 3.2], rtol=1e-6)


@EACH
def test_a_graph_with_sparse_steps_can_be_stored(made: Any) -> None:
    x = fb.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], name="x")
    loss = fb.reduce_sum(fb.square(fb.gather(x, [0, 2, 2])))
    train = made(0.1).minimize(loss, name="train")
    graph = fb.Graph.from_bytes(fb.get_default_graph().to_bytes())
    with fb.Session() as sess, fb.Session(graph) as again:
        for _ in range(3):
            sess.run(train)
            again.run("train")
        np.testing.assert_array_equal(sess.run(x), again.run("x:0"))


def test_one_variable_is_a_list_of_it() -> None:
    x, y = fb.Variable([1.0, 2.0]), fb.Variable(3.0)
    optimizer = fb.train.GradientDescentOptimizer(0.5)
    train = optimizer.minimize(fb.reduce_sum(x * y), var_list=x)
    with fb.Session() as sess:
        sess.run(train)
        assert sess.run(x).tolist() == [-0.5, 0.5]
        assert sess.run(y) == 3


def test_a_learning_rate_may_be_a_function() -> None:
    rate = fb.constant(0.5, fb.float64)
    w = fb.Variable([1.0, 2.0])
    step = fb.train.GradientDescentOptimizer(lambda: rate).minimize(fb.reduce_sum(w))
    sess = fb.Session()
    sess.run(step, {rate: 0.25})
    assert sess.run(w).tolist() == [0.75, 1.75]


@pytest.mark.parametrize(
    ("rate", "error", "text"),
    [
        (None, fb.errors.InvalidTypeError, "learning_rate is a number.*not None"),
        ("0.1", fb.errors.InvalidTypeError, "learning_rate is a number.*not '0.1'"),
        ([0.1, 0.2], fb.errors.InvalidArgumentError, "learning_rate is one number"),
    ],
)
def test_what_is_no_learning_rate(rate: Any, error: Any, text: str) -> None:
    w = fb.Variable(1.0)
    with pytest.raises(error, match=text):
        fb.train.GradientDescentOptimizer(rate).minimize(w * w)


# Constraints


def test_a_constraint_holds_after_each_step() -> None:
    kept = fb.Variable([1.0, -1.0], constraint=lambda value: fb.clip_by_value(value, 0.0, 1.0))
    free = fb.Variable([1.0, -1.0])
    loss = fb.reduce_sum(kept * 3.0) + fb.reduce_sum(free * 3.0)
    train = fb.train.GradientDescentOptimizer(0.1).minimize(loss)
    with fb.Session() as sess:
        for _ in range(5):
            sess.run(train)
        assert sess.run(kept).tolist() == [0.0, 0.0]
        np.testing.assert_allclose(sess.run(free), [-0.5, -2.5], rtol=1e-6)
