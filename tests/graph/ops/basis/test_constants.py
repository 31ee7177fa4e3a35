"""Constants, placeholders and operations that only pass on or wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.convert import to_array
from tests.interpreter import evaluate


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, fb.int32),
        (2**40, fb.int64),
        (1.5, fb.float32),
        (True, fb.bool),
        (1j, fb.complex128),
        ("text", fb.string),
        (np.float64(1), fb.float64),
        ([np.float64(1), np.float64(2)], fb.float32),
        ([np.float32(1), 1.0], fb.float32),
        ([np.int64(1), 1], fb.int32),
        ([np.int64(2**40)], fb.int64),
        ([np.ones(2), np.ones(2)], fb.float64),
        (np.arange(3, dtype=np.int8), fb.int8),
        ([[1, 2], [3, 4]], fb.int32),
    ],
)
def test_constants_take_the_dtype_of_their_values(value: Any, dtype: fb.DType) -> None:
    made = fb.constant(value)
    assert made.dtype is dtype
    assert made.shape == np.shape(value)
    result = evaluate(made)
    assert result.dtype == dtype.numpy
    expected = np.asarray(value)
    if dtype is fb.string:
        expected = np.array(b"text", object)
    np.testing.assert_array_equal(result, expected)


def test_a_constant_is_a_read_only_copy() -> None:
    array = np.ones(3)
    made = fb.constant(array)
    array[:] = 7
    value = evaluate(made)
    assert value.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        value[0] = 2


def test_complex_numbers_do_not_lose_their_imaginary_part() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="complex128 where bfloat16"):
        fb.constant([1, 1j], fb.bfloat16)


def test_floats_of_large_integers() -> None:
    assert evaluate(fb.constant([2**64, -1], fb.float32)).tolist() == [2.0**64, -1.0]
    assert evaluate(fb.constant(-(2**70), fb.float64)) == -(2.0**70)
    with pytest.raises(fb.errors.InvalidArgumentError, match="does not fit"):
        fb.constant(2**64)
    with pytest.raises(fb.errors.InvalidArgumentError, match="does not fit"):
        fb.constant(10**400, fb.float64)


def test_a_constants_shape() -> None:
    assert evaluate(fb.constant(3, shape=[2, 2])).tolist() == [[3, 3], [3, 3]]
    assert evaluate(fb.constant([1, 2, 3, 4], shape=[2, 2])).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(fb.errors.InvalidArgumentError, match="3 values cannot fit"):
        fb.constant([1, 2, 3], shape=[2, 2])


def test_a_placeholder_takes_its_dtype_first() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="takes the dtype first"):
        fb.placeholder([2, 3])
    x = fb.placeholder(fb.float32, [None, 2])
    assert evaluate(x, {x: [[1, 2]]}).tolist() == [[1, 2]]


def test_a_placeholder_that_is_not_fed_has_no_value() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="not fed"):
        evaluate(fb.placeholder(fb.float32) + 1.0)


def test_groups_wait_for_all() -> None:
    v = fb.Variable(1.0)
    both = fb.group(fb.assign_add(v, 1.0), [fb.no_op()])
    assert both.type == "NoOp"
    assert evaluate([both]) == [None]
    assert {op.type for op in both.control_inputs} == {"AssignAdd", "NoOp"}


def test_gradients_stop_and_are_prevented() -> None:
    x = fb.constant(2.0)
    assert fb.gradients(fb.stop_gradient(x) * 3.0, x) == [None]
    with pytest.raises(LookupError, match="on purpose"):
        fb.gradients(fb.prevent_gradient(x, message="on purpose"), x)


VALUES = {
    "bytes": b"a\0",
    "mixed": [b"a\0", "b\0\0"],
    "nested": [[b"\0"], [b"abc"]],
    "numpy": np.bytes_(b"a\0"),
    "text": "a\0",
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_bytes_are_kept_exactly(value: Any) -> None:
    def encoded(item: Any) -> Any:
        if isinstance(item, list):
            return [encoded(i) for i in item]
        return item.encode() if isinstance(item, str) else bytes(item)

    assert evaluate(fb.constant(value)).tolist() == encoded(value)
    array = np.array(value, object)  # A list would be one value for each dtype.
    assert evaluate(fb.py_func(lambda: array, [], fb.string)).tolist() == encoded(value)
    assert to_array(value, fb.string).tolist() == encoded(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[b"a"], [b"b", b"c"]], "not an array"),
        ([[b"a"], b"b"], "not an array"),
        (["a", 1], "1 of type int"),
        ([1, "a"], "1 of type int"),
    ],
)
def test_strings_that_are_no_array(value: Any, message: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=message):
        fb.constant(value)


def test_a_list_with_tensors_is_packed_where_a_tensor_is_wanted() -> None:
    t, v = fb.placeholder(fb.float64, [], name="t"), fb.Variable(np.float64(4.0), name="v")
    n = fb.placeholder(fb.int32, [], name="n")
    rows = fb.Variable([t, 2.0])
    packs = [
        (fb.convert_to_tensor([t, 2]), [3.0, 2.0]),
        (t * [v, 2.0], [12.0, 6.0]),
        ([v, 2.0] * t, [12.0, 6.0]),
        (fb.where([t > 2.0, False], [t, 1.0], [v, v]), [3.0, 4.0]),
        (fb.split([1, 2, 3], [n, -1])[1], [2, 3]),
        (fb.reduce_sum([1.0, v]), 5.0),
        (fb.matmul([[t, 1.0], [2.0, 3.0]], [[v], [t]]), [[15.0], [17.0]]),
        (fb.concat([[t], (1.0, v)], 0), [3.0, 1.0, 4.0]),
        (fb.pad([[7]], [[0, n], [n, 0]]), [[0, 7], [0, 0]]),
        (fb.gather([5, 6], [[n, 0]]), [[6, 5]]),
        (fb.strings.join([fb.identity([fb.constant("a"), "b"]), "c"]), [b"ac", b"bc"]),
        (rows.value, [3.0, 2.0]),
    ]
    with fb.Session() as sess:
        for found, expected in packs:
            assert sess.run(found, {t: 3.0, n: 1}).tolist() == expected
    assert fb.convert_to_tensor([[n, 0], [0, n]]).shape == [2, 2]
    assert isinstance(fb.convert_to_tensor([[1.0, 2.0]]).op.attributes["value"], np.ndarray)


def test_what_a_list_with_tensors_holds_is_of_one_dtype_shape_and_graph() -> None:
    t = fb.constant(1.0)
    with pytest.raises(fb.errors.InvalidTypeError, match="never converted silently"):
        fb.reduce_sum([t, fb.constant(1)])
    with pytest.raises(fb.errors.InvalidTypeError, match="float32 is wanted"):
        fb.reduce_sum([t, "a"])
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"\[\].*\[2\]"):
        fb.reduce_sum([t, [1.0, 2.0]])
    with fb.Graph().as_default():
        other = fb.constant(1.0)
        nested = fb.identity([[t, 2.0]])
        assert nested.graph is t.graph
        with pytest.raises(fb.errors.InvalidArgumentError, match="graph"):
            fb.identity([[t, 2.0], [other, 3.0]])


def test_a_list_with_tensors_is_no_constant() -> None:
    t = fb.constant(1.0, name="t")
    objects = np.empty(2, object)
    objects[0], objects[1] = t, 1.0
    endless: list[Any] = []
    endless.append(endless)
    values: list[Any] = [[t, 2.0], [[1.0, 2.0], [3.0, t]], [b"a", t], objects]
    for value in values:
        with pytest.raises(fb.errors.InvalidTypeError, match="stands in a list") as caught:
            fb.constant(value)
        assert caught.value.hint == "tensors go together with fb.stack([...])"
    with pytest.raises(fb.errors.InvalidTypeError, match="stands in a list"):
        fb.identity(objects)
    with pytest.raises(fb.errors.OpError):
        fb.identity(endless)
    endless.append(t)
    with pytest.raises(fb.errors.InvalidArgumentError, match="64 deep"):
        fb.identity(endless)


def test_a_placeholder_is_no_handle_and_has_no_bools_as_dimensions() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="cannot be fed"):
        fb.placeholder("resource")
    for dimension in (True, np.True_):
        with pytest.raises(fb.errors.InvalidTypeError, match="a dimension is an int"):
            fb.placeholder(fb.float32, [dimension])


def test_names_of_dtypes_mean_what_pythons_types_mean() -> None:
    assert fb.as_dtype("float") is fb.as_dtype(float) is fb.float32
    assert fb.as_dtype("int") is fb.as_dtype(int) is fb.int32
    assert fb.as_dtype("bool") is fb.as_dtype(bool) is fb.bool
    assert fb.as_dtype("double") is fb.float64
    assert fb.placeholder("float", [2]).dtype is fb.float32


def test_identities_of_several_tensors() -> None:
    x, y = fb.identity_n([fb.constant([1.0]), 2], name="both")
    assert [x.op.name, y.op.name] == ["both/Identity", "both/Identity_1"]
    with fb.Session() as sess:
        assert sess.run([x, y]) == [[1.0], 2]


# What a known shape tells

FROM_SHAPES = {
    "shape": (fb.shape, [3, 2000]),
    "size": (fb.size, 6000),
    "rank": (fb.rank, 2),
    "zeros_like": (fb.zeros_like, np.zeros((3, 2000))),
    "ones_like": (lambda x: fb.ones_like(x, fb.int64), np.ones((3, 2000))),
    "few": (lambda x: fb.ones_like(fb.slice(x, [0, 0], [2, 2])), np.ones((2, 2))),
}


@pytest.mark.parametrize("name", FROM_SHAPES)
def test_what_a_known_shape_tells_needs_no_feed(name: str) -> None:
    build, expected = FROM_SHAPES[name]
    x = fb.placeholder(fb.float32, [3, 2000])
    y = build(x)
    with fb.Session() as sess:
        np.testing.assert_array_equal(sess.run(y), expected)
        np.testing.assert_array_equal(sess.run(y, {x: np.ones((3, 2000))}), expected)
        # An initial value is computed with nothing fed.
        np.testing.assert_array_equal(sess.run(fb.Variable(y)), expected)


def test_what_a_part_of_a_shape_tells() -> None:
    x = fb.placeholder(fb.float32, [None, 3])
    assert fb.constant_value(fb.rank(x)) == 2
    assert fb.constant_value(fb.size(x)) is None
    assert fb.constant_value(fb.shape(x)[1] + 1) == 4
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError, match="must be fed"):
        sess.run(fb.zeros_like(x))


def test_shapes_that_are_filled_or_stopped_are_known() -> None:
    x = fb.placeholder(fb.float32, [None, 3])
    ones = fb.ones([fb.rank(x) - 1], fb.int32)
    assert fb.reshape(x, fb.concat([[-1], ones, fb.fill([2], 3)], 0)).shape == [None, 1, 3, 3]
    assert fb.reshape(x, fb.stop_gradient(fb.constant([3, -1]))).shape == [3, None]
    # How often, or what, only the run knows.
    n = fb.placeholder(fb.int32, [])
    assert fb.reshape(x, fb.fill([2], n)).shape == [None, None]
    assert fb.reshape(x, fb.fill([n], 1)).shape.rank is None


def test_the_value_of_a_constant_cannot_be_changed() -> None:
    c = fb.constant([1.0, 2.0])
    value = fb.constant_value(c)
    assert value is not None
    with pytest.raises(ValueError, match="read-only"):
        value[0] = 3.0
    assert fb.constant_value(fb.placeholder(fb.float32)) is None
    with pytest.raises(fb.errors.InvalidTypeError, match="a tensor, not 3"):
        fb.constant_value(3)


def test_a_known_shape_survives_an_import_that_replaces_its_tensor() -> None:
    with fb.Graph().as_default() as graph:
        x = fb.placeholder(fb.float32, [2, 3], name="x")
        fb.multiply(x, fb.cast(fb.size(x), fb.float32), name="y")
    fed = fb.ones([2, 3])
    [y] = fb.import_graph_def(graph, {"x:0": fed}, ["y:0"])
    np.testing.assert_array_equal(evaluate(y), np.full((2, 3), 6.0))
