"""What can be fed, which values fit, and what the errors say."""

import gc
import weakref

import numpy as np
import pytest

import flowbook as fb
from tests.need import requires


@pytest.fixture
def sess():
    with fb.Session() as session:
        yield session


def twice(sess, fetches, feeds):
    """The result of the reference executor; generated code gives the same."""
    first, second = sess.run(fetches, feeds), sess.run(fetches, feeds)
    assert repr(first) == repr(second)
    return first


# Which tensors


@pytest.mark.parametrize(
    "make",
    [
        lambda: fb.FIFOQueue(2, [fb.float32], [()]).dequeue(),
        lambda: fb.ConditionalAccumulator(fb.float32, [2]).take_grad(1),
    ],
    ids=["queue", "accumulator"],
)
def test_of_handles_only_those_of_variables_can_be_fed(sess, make):
    taken = make()
    with pytest.raises(fb.errors.InvalidArgumentError, match="is a handle, not of a variable"):
        sess.run(taken, {taken.op.inputs[0]: 1.0})


def test_any_tensor_can_be_fed(sess):
    a = fb.constant(2.0, name="a")
    b = fb.multiply(a, 3.0, name="b")
    c = b + 1.0
    assert twice(sess, c, {a: 10.0}) == 31.0
    assert twice(sess, c, {b: 10.0}) == 11.0
    assert twice(sess, c, {c: 10.0}) == 10.0
    assert twice(sess, c, {"a:0": 1.0}) == 4.0
    assert twice(sess, c, {"b": 1.0}) == 2.0
    assert twice(sess, [a, b, c], {b: 5.0}) == [2.0, 5.0, 6.0]
    assert twice(sess, c, {a: 0.0, b: 1.0}) == 2.0


def test_ports_of_a_multi_output_operation(sess):
    x = fb.constant([1.0, 2.0, 3.0])
    first, second, third = fb.split(x, 3, name="s")
    total = first * 100.0 + second * 10.0 + third
    assert twice(sess, total, {}).tolist() == [123.0]
    assert twice(sess, total, {second: [5.0]}).tolist() == [153.0]
    assert twice(sess, total, {"s:2": [0.0], first: [2.0]}).tolist() == [220.0]
    everything = {first: [1.0], second: [1.0], third: [1.0]}
    assert twice(sess, [total, second], everything)[0].tolist() == [111.0]


def test_all_outputs_fed_keep_the_operation_from_running(sess):
    calls = []

    def f():
        calls.append(1)
        return np.float32(1), np.float32(2)

    one, two = fb.py_func(f, [], [fb.float32, fb.float32])
    total = one + two
    assert twice(sess, total, {one: 10.0, two: 20.0}) == 30.0
    assert calls == []
    assert twice(sess, total, {one: 10.0}) == 12.0
    assert calls == [1, 1]


def test_a_fed_tensor_is_fetched_as_it_was_fed(sess):
    x = fb.placeholder(fb.float32, [None], name="x")
    given = np.array([1.0, 2.0], np.float32)
    found = twice(sess, [x, "x:0", fb.identity(x)], {x: given})
    for array in found:
        assert array.tolist() == [1.0, 2.0]
        assert not np.shares_memory(array, given)


def test_a_fed_variable_is_not_read(sess):
    with fb.control_dependencies([fb.py_func(lambda: pytest.fail("ran"), [], [])]):
        start = fb.constant([0.0, 0.0])
    v = fb.Variable(start, name="v")
    y = v * 2.0
    with fb.control_dependencies([fb.no_op()]):
        z = fb.add(v, y)
    for key in (v, v.handle, "v", "v:0"):
        assert twice(sess, [y, v, z], {key: [1.0, 2.0]})[0].tolist() == [2.0, 4.0]
        assert twice(sess, z, {key: [1.0, 2.0]}).tolist() == [3.0, 6.0]
    rows = fb.gather(v, [1, 1, 0])
    assert twice(sess, rows, {v: [1.0, 2.0]}).tolist() == [2.0, 2.0, 1.0]


def test_feeding_a_variable_leaves_its_value(sess):
    v = fb.Variable(1.0)
    assert sess.run(v) == 1.0
    assert twice(sess, v + 1.0, {v: 5.0}) == 6.0
    assert sess.run(v) == 1.0
    add = fb.assign_add(v, v * 10.0)
    assert sess.run(add, {v: 5.0}) == 51.0
    assert sess.run(add, {v: 5.0}) == 101.0
    assert sess.run(v) == 101.0


def test_asking_whether_a_fed_variable_has_a_value(sess):
    v = fb.Variable(1.0)
    asked = fb.is_variable_initialized(v)
    assert not twice(sess, asked, {v: 2.0})
    sess.run(v)
    assert twice(sess, asked, {v: 2.0})


def test_an_update_of_a_fed_variable_initialises_it(sess):
    v = fb.Variable(1.0)
    assert sess.run(fb.assign_add(v, v), {v: 5.0}) == 6.0


# Which values


@pytest.mark.parametrize("dtype", [fb.float16, fb.float32, fb.float64, fb.complex64], ids=str)
@pytest.mark.parametrize(
    "value", [1, 2.5, [1.0, 2], [[True]], np.float64(3), np.arange(3, dtype=np.uint8)], ids=repr
)
def test_numbers_become_floats(sess, dtype, value):
    x = fb.placeholder(dtype)
    found = twice(sess, x, {x: value})
    assert found.dtype == dtype.numpy
    np.testing.assert_array_equal(found, np.asarray(value).astype(dtype.numpy))


def test_float64_rounds_to_float32(sess):
    x = fb.placeholder(fb.float32, [2])
    values = np.array([0.1, 1 / 3])
    assert twice(sess, x, {x: values}).tolist() == values.astype(np.float32).tolist()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (fb.int8, 128),
        (fb.int8, [-129, 0]),
        (fb.uint8, -1),
        (fb.uint8, np.array([255, 256])),
        (fb.int32, 2**31),
        (fb.int32, np.int64(-(2**31) - 1)),
        (fb.int64, 2**63),
        (fb.int64, np.array([2**63], np.uint64)),
        (fb.uint64, -1),
    ],
    ids=str,
)
def test_integers_out_of_range_are_refused(sess, dtype, value):
    x = fb.placeholder(dtype, name="x")
    for _ in range(2):
        with pytest.raises(fb.errors.InvalidArgumentError, match="fit") as caught:
            sess.run(x, {x: value})
        assert "'x:0'" in str(caught.value)


@pytest.mark.parametrize("dtype", [fb.int8, fb.uint8, fb.int32, fb.int64, fb.uint64], ids=str)
def test_integers_within_range(sess, dtype):
    x = fb.placeholder(dtype)
    for value in (dtype.min, dtype.max, np.array([dtype.min, 1, dtype.max], dtype.numpy)):
        found = twice(sess, x, {x: value})
        assert found.dtype == dtype.numpy
        np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (fb.int32, 1.0),
        (fb.int32, [1, 2.5]),
        (fb.int64, np.ones(2)),
        (fb.float32, 1j),
        (fb.float32, "1.0"),
        (fb.float32, None),
        (fb.float32, [b"x"]),
        (fb.bool, 1),
        (fb.bool, 1.0),
        (fb.string, 1.0),
        (fb.string, [1]),
        (fb.string, object()),
    ],
    ids=lambda v: str(v)[:10],
)
def test_values_of_another_kind_are_refused(sess, dtype, value):
    x = fb.placeholder(dtype, name="x")
    y = fb.identity(x, name="consumer")
    for _ in range(2):
        with pytest.raises(fb.errors.InvalidTypeError) as caught:
            sess.run(y, {x: value})
        text = str(caught.value)
        assert isinstance(caught.value, TypeError)
        assert "the value fed for 'x:0'" in text
        assert "'y (consumer)'" in text
        assert "test_feeds.py, line" in text


def test_ragged_lists_are_refused(sess):
    x = fb.placeholder(fb.float32, name="x")
    with pytest.raises(fb.errors.InvalidArgumentError, match="the value fed for 'x:0': not an arr"):
        sess.run(x, {x: [[1.0], [1.0, 2.0]]})


def test_strings_and_bools(sess):
    s, b = fb.placeholder(fb.string), fb.placeholder(fb.bool)
    assert twice(sess, s, {s: "é"}) == "é".encode()
    assert twice(sess, s, {s: b"\xff"}) == b"\xff"
    assert twice(sess, s, {s: ["a", b"b"]}).tolist() == [b"a", b"b"]
    assert twice(sess, s, {s: np.array([["x", "yy"]])}).tolist() == [[b"x", b"yy"]]
    assert twice(sess, s, {s: np.array(["x", b"y"], object)}).tolist() == [b"x", b"y"]
    assert twice(sess, b, {b: [True, False]}).tolist() == [True, False]
    assert twice(sess, b, {b: np.bool_(True)})


def test_a_string_array_that_has_changed_is_looked_at_again(sess):
    s = fb.placeholder(fb.string)
    y = fb.identity(s)
    words = np.array([b"x", b"y"], object)
    assert twice(sess, y, {s: words}).tolist() == [b"x", b"y"]
    words[0] = "z"
    assert twice(sess, y, {s: words}).tolist() == [b"z", b"y"]
    words[0] = 3
    with pytest.raises(fb.errors.InvalidTypeError):
        sess.run(y, {s: words})


class Labelled(np.ndarray):
    """An array with behaviour of its own."""

    def __mul__(self, other):
        raise AssertionError("a kernel got the subclass")


@pytest.mark.parametrize("layout", ["strided", "reversed", "fortran", "big-endian", "subclass"])
def test_layouts_and_subclasses(sess, layout):
    plain = np.arange(12, dtype=np.float32).reshape(3, 4)
    value = {
        "strided": np.repeat(plain, 2, axis=1)[:, ::2],
        "reversed": plain[::-1].copy()[::-1],
        "fortran": np.asfortranarray(plain),
        "big-endian": plain.astype(">f4"),
        "subclass": plain.view(Labelled),
    }[layout]
    x = fb.placeholder(fb.float32, [3, 4])
    found = twice(sess, [x, x * 2.0, fb.transpose(x)], {x: value})
    for array in found:
        assert type(array) is np.ndarray
        assert array.dtype == np.dtype("float32")
        assert array.dtype.isnative
    np.testing.assert_array_equal(found[0], plain)
    np.testing.assert_array_equal(found[1], plain * 2)
    np.testing.assert_array_equal(found[2], plain.T)


def test_objects_with_an_array_interface(sess):
    class Table:
        def __array__(self, dtype=None, copy=None):
            return np.array([1.0, 2.0])

    x = fb.placeholder(fb.float32, [2])
    assert twice(sess, x, {x: Table()}).tolist() == [1.0, 2.0]
    assert twice(sess, x, {x: memoryview(np.array([3.0, 4.0]))}).tolist() == [3.0, 4.0]
    assert twice(sess, x, {x: range(2)}).tolist() == [0.0, 1.0]


def test_a_symbolic_value_is_refused(sess):
    x, v = fb.placeholder(fb.float32, [], name="x"), fb.Variable(1.0)
    for value in (fb.constant(1.0), v, x):
        with pytest.raises(TypeError, match="'x:0' is itself symbolic") as caught:
            sess.run(x, {x: value})
        assert "fetch it first" in str(caught.value)
    with pytest.raises(TypeError):
        sess.run(x, {x: [fb.constant(1.0)]})


# Shapes


def test_shapes_are_checked_dimension_by_dimension(sess):
    x = fb.placeholder(fb.float32, [None, 3, 2], name="x")
    fb.negative(x, name="one")
    y = fb.add(x, 1.0, name="two")
    sess.run(y, {x: np.ones((4, 3, 2))})
    for _ in range(2):
        with pytest.raises(fb.errors.InvalidArgumentError) as caught:
            sess.run(y, {x: np.ones((4, 2, 3), np.float32)})
        text = str(caught.value)
        assert "the shape [4, 2, 3], which does not fit [?, 3, 2]" in text
        assert "dimension 1 is 2 instead of 3; dimension 2 is 3 instead of 2" in text
        assert "used by 'one', 'y (two)'" in text
        assert "test_feeds.py, line" in text
        assert isinstance(caught.value, ValueError)
    with pytest.raises(ValueError, match="it has 2 dimensions instead of 3"):
        sess.run(y, {x: np.ones((3, 2))})
    with pytest.raises(ValueError, match="it has 0 dimensions instead of 3"):
        sess.run(y, {x: 1.0})
    assert sess.run(y, {x: np.ones((0, 3, 2))}).shape == (0, 3, 2)


def test_a_variable_is_fed_with_its_shape(sess):
    v = fb.Variable(fb.zeros([2]), name="v")
    with pytest.raises(ValueError, match=r"'v:0' has the shape \[3\], which does not fit \[2\]"):
        sess.run(v, {v: [1.0, 2.0, 3.0]})


def test_unknown_shapes_take_all(sess):
    x = fb.placeholder(fb.float32)
    for shape in [(), (1,), (2, 3)]:
        assert np.shape(sess.run(x, {x: np.ones(shape)})) == shape


def test_many_shapes_in_turn(sess):
    x = fb.placeholder(fb.float32, [None])
    total = fb.reduce_sum(x)
    for n in range(200):
        assert sess.run(total, {x: np.ones(n, np.float32)}) == n
    with pytest.raises(ValueError, match="instead of"):
        sess.run(total, {x: np.ones((1, 1), np.float32)})


def test_a_fed_shape_may_not_contradict_what_was_inferred_from_it(sess):
    x = fb.placeholder(fb.float32, [6])
    shape = fb.constant([2, 3], name="shape")
    y = fb.reshape(x, shape)
    assert y.shape == [2, 3]
    values = np.arange(6)
    assert twice(sess, y, {x: values, shape: [2, 3]}).shape == (2, 3)
    for _ in range(3):
        with pytest.raises(fb.errors.InvalidArgumentError, match=r"\[3, 2\].*\[2, 3\]") as caught:
            sess.run(y, {x: values, shape: [3, 2]})
        assert caught.value.operation is y.op


# Which keys


def test_an_axis_that_was_read_when_the_graph_was_built(sess):
    x = fb.constant([[1.0, 2.0, 3.0]])
    one = fb.constant(1, name="one")
    axis = fb.rank(x) - one
    total = fb.reduce_sum(x, axis)
    for tensor in (axis, one, axis.op.inputs[0]):
        with pytest.raises(fb.errors.InvalidArgumentError, match=r"Sum'.*is fed, but its value"):
            sess.run(total, {tensor: 0})
    assert sess.run([axis, fb.exp(fb.cast(axis, fb.float32))], {one: 2}) == [0, 1]
    assert sess.run(total, {x: [[1.0, 2.0, 4.0]]}).tolist() == [7.0]
    assert sess.run([total * 2, one], {total: [3.0], one: 5})[0].tolist() == [6.0]


def test_one_tensor_fed_twice_is_refused(sess):
    x, v = fb.placeholder(fb.float32, [], name="x"), fb.Variable(1.0, name="v")
    for keys in [(x, "x:0"), ("x", "x:0"), (v, v.handle), (v, "v:0")]:
        with pytest.raises(fb.errors.InvalidArgumentError, match="is fed twice"):
            sess.run(x + v, dict.fromkeys([*keys, x] if keys[0] is v else keys, 1.0))


def test_unknown_names(sess):
    x = fb.placeholder(fb.float32, [], name="images")
    for name in ("image", "image:0"):
        with pytest.raises(fb.errors.NotFoundError, match="did you mean 'images'"):
            sess.run(x, {name: 1.0})
    with pytest.raises(fb.errors.NotFoundError, match="has 1 output"):
        sess.run(x, {"images:1": 1.0})


def test_keys_that_are_no_tensors(sess):
    x = fb.placeholder(fb.float32, [])
    nothing = fb.no_op(name="nothing")
    for key in (1, None, x.op):
        with pytest.raises(fb.errors.InvalidTypeError, match="cannot be fed"):
            sess.run(x, {key: 1.0})
    with pytest.raises(ValueError, match="no output that could be fed"):
        sess.run(x, {"nothing": 1.0})
    del nothing


def test_feeds_are_a_mapping(sess):
    x = fb.placeholder(fb.float32, [])
    y = x + 1.0
    for _ in range(2):
        for feeds in ([x], [(x, 1.0)], x, "x", np.ones([2, 2])):
            with pytest.raises(TypeError, match="feeds is a dict from tensors to values"):
                sess.run(y, feeds)
        assert sess.run(y, {x: 1.0}) == 2.0


def test_tensors_of_another_graph(sess):
    x = fb.placeholder(fb.float32, [])
    with fb.Graph().as_default():
        other = fb.placeholder(fb.float32, [])
    with pytest.raises(ValueError, match="different graphs"):
        sess.run(x, {x: 1.0, other: 1.0})


def test_feeds_that_nothing_needs_are_checked_all_the_same(sess):
    x, y = fb.placeholder(fb.float32, [2]), fb.placeholder(fb.float32, [])
    assert sess.run(y, {y: 1.0, x: [1.0, 2.0]}) == 1.0
    with pytest.raises(ValueError, match="dimension 0 is 3"):
        sess.run(y, {y: 1.0, x: [1.0, 2.0, 3.0]})


def test_the_order_of_the_feeds_does_not_matter(sess):
    x, y = fb.placeholder(fb.float32, []), fb.placeholder(fb.float32, [])
    d = x - y
    for _ in range(3):
        assert sess.run(d, {x: 3.0, y: 1.0}) == 2.0
        assert sess.run(d, {y: 1.0, x: 3.0}) == 2.0


@pytest.mark.parametrize("run", range(3))
def test_a_fed_array_is_not_kept(sess, run):
    x = fb.placeholder(fb.float32, [1000])
    y, z = fb.reshape(x, [10, 100]), fb.reduce_sum(x)
    for _ in range(run):
        sess.run([x, y, z], {x: np.ones(1000)})
    given = np.ones(1000, np.float32)
    kept = weakref.ref(given)
    found = sess.run([x, y, z], {x: given})
    del given
    gc.collect()
    assert kept() is None
    assert found[1].sum() == 1000


def test_a_masked_array_is_refused_where_its_mask_would_be_lost() -> None:
    x = fb.placeholder(fb.float32, [3])
    masked = np.ma.masked_less(np.arange(3, dtype=np.float32), 1)
    with fb.Session() as sess:
        for value in (masked, [masked[0:1], masked[1:2]]):
            with pytest.raises(fb.errors.InvalidArgumentError, match="masked") as caught:
                sess.run(x, {x: value})
            assert "filled" in str(caught.value)
        with pytest.raises(fb.errors.InvalidArgumentError, match="masked"):
            fb.constant(masked)
        assert sess.run(x, {x: masked.filled(7)}).tolist() == [7.0, 1.0, 2.0]
        # Nothing is lost of one without a masked element.
        assert sess.run(x, {x: np.ma.array([1.0, 2.0, 3.0])}).tolist() == [1.0, 2.0, 3.0]


@requires(module="pandas")
def test_a_column_that_lacks_values_is_not_fed_as_nan() -> None:
    import pandas

    x = fb.placeholder(fb.float64, [3])
    column = pandas.Series([1, None, 3], dtype="Int64")
    with fb.Session() as sess:
        with pytest.raises(fb.errors.InvalidArgumentError, match=r"'x .*lacks 1 value of 3"):
            sess.run(x, {x: column})
        with pytest.raises(fb.errors.InvalidArgumentError, match="lacks 1 value of 3"):
            fb.constant(column)
        assert sess.run(x, {x: column.fillna(7)}).tolist() == [1.0, 7.0, 3.0]


def test_feeding_that_was_prevented() -> None:
    x, v = fb.placeholder_with_default(1.0, []), fb.Variable(2.0)
    y = x + v
    graph = x.graph
    assert graph.is_feedable(x)
    with fb.Session() as sess:
        assert sess.run(y, {x: 5.0}) == 7.0
    graph.prevent_feeding(x)
    graph.prevent_feeding(v)
    assert not graph.is_feedable(x)
    assert not graph.is_feedable(v)
    with fb.Session() as sess:
        for key in (x, v):
            with pytest.raises(fb.errors.InvalidArgumentError, match="was prevented"):
                sess.run(y, {key: 5.0})
        assert sess.run(y) == 3.0
    with pytest.raises(fb.errors.InvalidTypeError, match="no tensor or variable of this graph"):
        graph.prevent_feeding(3)
