"""Templates: called again, a function finds the variables that its first call made."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb

RNG = np.random.default_rng(2015)


def names() -> list[str]:
    return [variable.op.name for variable in fb.get_default_graph().variables()]


def two_layers(x: Any) -> Any:
    hidden = fb.layers.dense(x, 3, activation=fb.tanh, name="hidden")
    return fb.layers.dense(hidden, 2)


def test_all_calls_share_what_the_first_made() -> None:
    net = fb.template(two_layers, "net")
    x = fb.placeholder(fb.float32, [None, 4])
    first, second = net(x), net(2.0 * x)
    assert names() == [
        "net/hidden/kernel",
        "net/hidden/bias",
        "net/dense/kernel",
        "net/dense/bias",
    ]
    assert net.variables() == fb.get_default_graph().variables()
    assert (first.name, second.name) == ("net/dense/BiasAdd:0", "net_1/dense/BiasAdd:0")
    batch = RNG.normal(size=[5, 4])
    with fb.Session() as sess:
        np.testing.assert_array_equal(
            sess.run(first, {x: 2.0 * batch}), sess.run(second, {x: batch})
        )


def test_variables_of_one_name_are_told_apart_by_their_order() -> None:
    def two() -> list[fb.Variable]:
        return [fb.Variable(0.0, name="w"), fb.Variable(1.0, name="w"), fb.Variable(2)]

    made = fb.template(two)
    first, second = made(), made()
    assert [a is b for a, b in zip(first, second, strict=True)] == [True, True, True]
    assert names() == ["two/w", "two/w_1", "two/Variable"]


def test_what_is_named_after_a_variable_gets_the_same_name_in_each_call() -> None:
    def build(x: Any) -> Any:
        fb.Variable(0.0, name="dense")
        return fb.layers.dense(x, 1)

    made = fb.template(build)
    x = fb.zeros([1, 2])
    assert made(x).name == "build/dense_1/BiasAdd:0"
    assert made(x).name == "build_1/dense_1/BiasAdd:0"


def test_a_call_may_use_fewer_variables_and_not_others() -> None:
    def build(which: str) -> None:
        for letter in which:
            fb.Variable(0.0, name=letter)

    made = fb.template(build, "made")
    made("abc")
    made("ca")
    assert names() == ["made/a", "made/b", "made/c"]
    with pytest.raises(fb.errors.FailedPreconditionError, match=r"no variable 'd'.*made/a, made/b"):
        made("ad")


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        ([1.0, 2.0], None, r"is float32 \[3\], and this call asks for float32 \[2\]"),
        ([1, 2, 3], None, r"asks for int32 \[3\]"),
        (lambda: fb.zeros([3], fb.float64), fb.float64, "asks for float64"),
    ],
)
def test_a_variable_of_another_kind_is_refused(value: Any, dtype: Any, message: str) -> None:
    made = fb.template(lambda value, dtype: fb.Variable(value, name="w", dtype=dtype), "made")
    made([1.0, 2.0, 3.0], None)
    with pytest.raises(fb.errors.InvalidArgumentError, match=message):
        made(value, dtype)


def test_a_layer_of_another_width_is_refused() -> None:
    net = fb.template(two_layers)
    net(fb.zeros([1, 4]))
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"kernel has the shape \[5, 3\]"):
        net(fb.zeros([1, 5]))


def test_a_first_call_that_fails_is_none() -> None:
    def build(fails: bool) -> fb.Variable:
        made = fb.Variable(0.0, name="w")
        if fails:
            raise ZeroDivisionError
        return made

    made = fb.template(build)
    with pytest.raises(ZeroDivisionError):
        made(True)
    with pytest.raises(fb.errors.FailedPreconditionError, match="call build before"):
        made.variables()
    assert made(False) is made(False)


def test_each_graph_has_variables_of_its_own() -> None:
    net = fb.template(two_layers)
    net(fb.zeros([1, 4]))
    other = fb.Graph()
    with other.as_default():
        x = fb.zeros([1, 4])
    net(x)
    assert len(net.variables()) == len(net.variables(other)) == 4
    assert not {*net.variables()} & {*net.variables(other)}


def test_templates_nest() -> None:
    layer = fb.template(lambda x: fb.layers.dense(x, 2), "layer")
    net = fb.template(lambda x: layer(layer(x)), "net")
    x = fb.zeros([1, 2])
    net(x)
    net(x)
    layer(x)
    assert names() == ["net/layer/dense/kernel", "net/layer/dense/bias"]
    assert net.variables() == layer.variables()


def test_a_template_made_in_each_call_of_another_shares_too() -> None:
    def build(x: Any) -> Any:
        layer = fb.template(lambda x: fb.layers.dense(x, 2), "layer")
        return layer(layer(x))

    net = fb.template(build, "net")
    net(fb.zeros([1, 2]))
    net(fb.zeros([1, 2]))
    assert names() == ["net/layer/dense/kernel", "net/layer/dense/bias"]


def test_bodies_of_a_function_share_a_template() -> None:
    net = fb.template(two_layers, "net")

    @fb.function
    def score(x: Any) -> Any:
        return fb.reduce_sum(net(x))

    one, two = fb.ones([1, 4]), fb.ones([2, 4])
    found = [score(one), score(two), fb.reduce_sum(net(one))]
    assert len(names()) == 4
    with fb.Session() as sess:
        a, b, c = sess.run(found)
    assert a == c
    assert b == pytest.approx(2 * a)


def test_a_template_of_a_function_shares_the_functions_variables() -> None:
    @fb.function(inline=False)
    def layer(x: Any) -> Any:
        return fb.layers.dense(x, 2)

    net = fb.template(lambda x: layer(layer(x)), "net")
    net(fb.zeros([1, 2]))
    net(fb.zeros([1, 2]))
    assert len(names()) == 2


def test_branches_and_loops_share_a_template() -> None:
    scaled = fb.template(lambda x: x * fb.Variable(3.0, name="factor"), "scaled")
    x = fb.placeholder(fb.float32, [])
    y = fb.cond(x > 0, lambda: scaled(x), lambda: scaled(scaled(x)))
    _, z = fb.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, scaled(v)), (0, x))
    assert len(names()) == 1
    with fb.Session() as sess:
        assert sess.run([y, z], {x: 1.0}) == [3.0, 9.0]
        assert sess.run([y, z], {x: -1.0}) == [-9.0, -9.0]


def test_a_stored_graph_shares_them_and_trains(tmp_path: Path) -> None:
    net = fb.template(two_layers, "net")
    x = fb.placeholder(fb.float32, [None, 4], name="x")
    fb.reduce_sum(fb.square(net(x) - net(-x)), name="loss")
    fb.get_default_graph().save(tmp_path / "graph")
    loaded = fb.Graph.load(tmp_path / "graph")
    with loaded.as_default(), fb.Session() as sess:
        assert len(loaded.variables()) == 4
        loss = loaded.get_tensor_by_name("loss:0")
        train = fb.train.GradientDescentOptimizer(0.01).minimize(loss)
        feeds = {"x:0": RNG.normal(size=[8, 4])}
        before = sess.run(loss, feeds)
        sess.run(train, feeds)
        assert sess.run(loss, feeds) < before


def test_a_variable_says_what_it_takes() -> None:
    assert list(inspect.signature(fb.Variable).parameters)[:4] == [
        "initial_value",
        "trainable",
        "name",
        "dtype",
    ]
    with pytest.raises(TypeError, match="Variable: it needs 'initial_value'"):
        fb.Variable()  # type: ignore[call-arg]


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="a template is made of a function"):
        fb.template("net")  # type: ignore[arg-type]
