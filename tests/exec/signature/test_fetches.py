"""What can be fetched, and the structure of the result."""

import collections
import dataclasses
import types
from typing import NamedTuple

import numpy as np
import pytest

import flowbook as fb


class Pair(NamedTuple):
    first: object
    second: object


@dataclasses.dataclass(frozen=True)
class Result:
    loss: object
    parts: object


@dataclasses.dataclass
class Derived:
    value: object
    shown: object = dataclasses.field(init=False, default=None)


@pytest.fixture
def sess():
    with fb.Session() as session:
        yield session


@pytest.fixture
def a():
    return fb.constant(1.0, name="a")


@pytest.fixture
def b():
    return fb.constant([2, 3], name="b")


def twice(sess, fetches, feeds=None):
    """The result of the first run; the second, of generated code, has the same structure."""
    first, second = sess.run(fetches, feeds), sess.run(fetches, feeds)
    assert repr(first) == repr(second)
    return first


def test_scalars_are_numpy_scalars(sess, a):
    for tensor, kind in (
        (a, np.float32),
        (a + 1.0, np.float32),
        (fb.constant(3), np.int32),
        (fb.less(a, 2.0), np.bool_),
        (fb.constant(1 + 2j), np.complex128),
    ):
        assert type(twice(sess, tensor)) is kind
        assert type(sess.run(tensor, {tensor: np.zeros((), tensor.dtype.numpy)})) is kind


def test_arrays_have_dtype_and_shape(sess, b):
    found = twice(sess, b * 2)
    assert type(found) is np.ndarray
    assert found.dtype == np.int32
    assert found.tolist() == [4, 6]


def test_strings_are_bytes(sess):
    word, words = fb.constant("grün"), fb.constant(["a", "b"])
    assert twice(sess, word) == "grün".encode()
    found = twice(sess, words)
    assert found.dtype == object
    assert found.tolist() == [b"a", b"b"]


def test_an_operation_gives_none(sess, a):
    v = fb.Variable(0.0)
    add = fb.assign_add(v, a)
    assert twice(sess, add.op) is None
    assert sess.run(v) == 2.0
    assert twice(sess, [a.op, a, fb.no_op()]) == [None, 1.0, None]


def test_names(sess, a, b):
    assert twice(sess, "a:0") == 1.0
    x, y = fb.split(fb.constant([1.0, 2.0]), 2, name="s")
    with pytest.warns(UserWarning, match="returns nothing"):
        assert twice(sess, ["s:1", "s:0", "s"]) == [2.0, 1.0, None]
    assert twice(sess, {"s:0": "s:1"}) == {"s:0": 2.0}
    del x, y


def test_variables(sess):
    v = fb.Variable([1.0, 2.0], name="v")
    for fetch in (v, v.value, v.handle, "v:0", "v/read:0"):
        assert twice(sess, fetch).tolist() == [1.0, 2.0]
    assert twice(sess, v.op) is None
    assert twice(sess, "v") is None


def test_nested_structures_are_kept(sess, a, b):
    fetches = {
        "list": [a, (a, b)],
        "tuple": (a, [], {}),
        "ordered": collections.OrderedDict(z=a, y=a.op),
        "pair": Pair(b, [a]),
        "result": Result(a, {"x": b}),
        3: [[[]]],
    }
    found = twice(sess, fetches)
    assert list(found) == list(fetches)
    assert found["list"][0] == 1.0
    assert type(found["list"][1]) is tuple
    assert found["tuple"] == (1.0, [], {})
    assert type(found["ordered"]) is collections.OrderedDict
    assert list(found["ordered"].items()) == [("z", 1.0), ("y", None)]
    assert type(found["pair"]) is Pair
    assert found["pair"].first.tolist() == [2, 3]
    assert found["pair"].second == [1.0]
    assert type(found["result"]) is Result
    assert found["result"].loss == 1.0
    assert found["result"].parts["x"].tolist() == [2, 3]
    assert found[3] == [[[]]]


@pytest.mark.parametrize("empty", [[], (), {}, collections.OrderedDict(), [[], ()]], ids=repr)
def test_empty_structures(sess, empty):
    assert twice(sess, empty) == empty
    assert type(sess.run(empty)) is type(empty)
    x = fb.placeholder(fb.float32, [])
    assert twice(sess, empty, {x: 1.0}) == empty


def test_duplicates(sess, a, b):
    found = twice(sess, [b, b, "b:0", (b,)])
    assert [np.asarray(f).tolist() for f in found[:3]] == [[2, 3]] * 3
    assert found[3][0].tolist() == [2, 3]
    calls = []
    noted = fb.py_func(lambda: calls.append(1) or np.float32(4), [], fb.float32)
    assert twice(sess, [noted, noted, noted.op]) == [4.0, 4.0, None]
    assert len(calls) == 2


def test_a_list_a_tuple_and_a_namedtuple_of_the_same_tensors_differ(sess, a):
    c = a + 1.0
    for _ in range(3):
        assert sess.run((a, c)) == (1.0, 2.0)
        assert type(sess.run((a, c))) is tuple
        assert type(sess.run(Pair(a, c))) is Pair
        assert type(sess.run([a, c])) is list
        assert sess.run(a, {c: 0.0}) == 1.0
        assert sess.run([a], {c: 0.0}) == [1.0]
        assert sess.run((a,), {c: 0.0}) == (1.0,)


def test_what_resembles_a_remembered_signature_is_refused(sess, a):
    c = a + 1.0
    for _ in range(2):
        sess.run(a, {c: 1.0})
        sess.run([a])
    for fetches in ((a, c, None), (1, a), (a, None, c)):
        with pytest.raises(TypeError, match="cannot be fetched"):
            sess.run(fetches)


def test_a_structure_changed_between_runs_is_taken_as_it_is(sess, a, b):
    fetches = [a]
    assert sess.run(fetches) == [1.0]
    fetches.append(a + 2.0)
    assert sess.run(fetches) == [1.0, 3.0]
    named = {"x": a}
    assert sess.run(named) == {"x": 1.0}
    named["x"] = b
    assert sess.run(named)["x"].tolist() == [2, 3]


def test_dataclasses_with_fields_that_init_does_not_take(sess, a):
    item = Derived(a)
    item.shown = a + 1.0
    found = twice(sess, item)
    assert (found.value, found.shown) == (1.0, 2.0)
    assert item.value is a


def test_classes_of_attrs(sess, a, b):
    attr = pytest.importorskip("attr")

    @attr.s
    class Found:
        first = attr.ib()
        second = attr.ib()

    fetches = Found(a, {"inner": [Found(b, a.op)]})
    result = sess.run(fetches)
    assert type(result) is Found
    assert result.first == sess.run(a)
    [inner] = result.second["inner"]
    assert type(inner) is Found
    np.testing.assert_array_equal(inner.first, sess.run(b))
    assert inner.second is None
    assert fetches.first is a


def test_other_mappings(sess, a):
    found = sess.run(types.MappingProxyType({"x": a}))
    assert found == {"x": 1.0}
    grouped = collections.defaultdict(list, x=a)
    assert sess.run(grouped) == {"x": 1.0}


def test_gradients_as_slices(sess):
    table = fb.Variable([[1.0], [2.0], [3.0]])
    loss = fb.reduce_sum(fb.gather(table, [2, 2]))
    (gradient,) = fb.gradients(loss, [table])
    assert isinstance(gradient, fb.IndexedSlices)
    found = sess.run(gradient)
    assert found.values.tolist() == [[1.0], [1.0]]
    assert found.indices.tolist() == [2, 2]
    assert found.dense_shape.tolist() == [3, 1]


@pytest.mark.parametrize(
    "wrong",
    [None, 1, 2.5, np.ones(2), object(), {1}, str, Result, b"a:0"],
    ids=lambda w: getattr(w, "__name__", type(w).__name__),
)
def test_what_cannot_be_fetched(sess, a, wrong):
    for fetches in (wrong, [a, wrong], {"x": (wrong,)}):
        with pytest.raises(fb.errors.InvalidTypeError, match="cannot be fetched") as caught:
            sess.run(fetches)
        assert repr(wrong) in str(caught.value)
        assert isinstance(caught.value, TypeError)


def test_unknown_names_come_with_suggestions(sess, a):
    fb.constant(1.0, name="weights")
    for name in ("weigths", "weigths:0"):
        with pytest.raises(fb.errors.NotFoundError, match="did you mean 'weights'"):
            sess.run(name)
    with pytest.raises(fb.errors.NotFoundError, match="has 1 output"):
        sess.run("a:1")
    with pytest.raises(fb.errors.InvalidArgumentError, match="not the name of a tensor"):
        sess.run("a:x")


def test_another_graphs_tensors_are_refused(sess, a):
    with fb.Graph().as_default():
        other = fb.constant(1.0, name="other")
        v = fb.Variable(1.0, name="v")
    for fetch in (other, other.op, v):
        with pytest.raises(ValueError, match="different graphs") as caught:
            sess.run([a, fetch])
        assert "test_fetches.py, line" in str(caught.value)


def test_a_fetch_that_the_feeds_do_not_reach_names_the_placeholder(sess, a):
    x = fb.placeholder(fb.float32, [None, 3], name="x")
    y = fb.placeholder(fb.float32, [], name="y")
    z = fb.add(x * a, y, name="z")
    for fetch in (z, z.op, [a, z], "z:0"):
        with pytest.raises(fb.errors.InvalidArgumentError) as caught:
            sess.run(fetch, {y: 1.0})
        text = str(caught.value)
        assert "'x'" in text
        assert "must be fed with a float32 value of shape [?, 3]" in text
        assert "'z" in text
        assert "test_fetches.py, line" in text
        assert caught.value.operation is x.op
    with pytest.raises(ValueError, match="must be fed"):
        sess.run(x)
    with pytest.raises(ValueError, match="must be fed with an int32 value"):
        sess.run(fb.placeholder(fb.int32, []))
    assert sess.run(z, {y: 1.0, "x:0": np.ones((1, 3))}).tolist() == [[2.0, 2.0, 2.0]]


def test_a_fed_placeholder_as_an_operation(sess):
    x = fb.placeholder(fb.float32, [], name="x")
    assert twice(sess, [x.op, x], {x: 2.0}) == [None, 2.0]
    with pytest.raises(ValueError, match="must be fed"):
        sess.run(x.op)


def test_what_contains_itself_is_refused(sess, a):
    nested = [a]
    nested.append(nested)
    mapping = {}
    mapping["again"] = [mapping, a]
    for fetches in (nested, mapping):
        with pytest.raises(fb.errors.InvalidArgumentError, match="contains itself"):
            sess.run(fetches)
        with pytest.raises(fb.errors.InvalidArgumentError, match="contains itself"):
            fb.forecast(fetches)


def test_a_fetch_that_is_too_large_to_be_copied(sess):
    # A view of one number, until it becomes the caller's own.
    row = fb.placeholder(fb.float32, [1, 1], name="row")
    large = fb.broadcast_to(row, [2**24, 2**24], name="large")
    for _ in range(3):
        with pytest.raises(fb.errors.ResourceExhaustedError, match="Unable to allocate"):
            sess.run(large, {row: [[1.0]]})


def test_a_name_without_a_port_says_that_it_returns_nothing(sess, a):
    fb.negative(a, name="n")
    with pytest.warns(UserWarning, match=r"'n' is an operation's, .* its value is 'n:0'") as told:
        assert sess.run(["n", {"m": "n:0"}, ("n",)]) == [None, {"m": -1.0}, (None,)]
    assert len(told) == 1
    assert told[0].filename == __file__
    # What runs for what it does may be named so.
    W = fb.Variable(1.0, name="W")
    fb.assign(W, 2.0, name="write")
    assert sess.run("write") is None
    assert sess.run(W) == 2.0


def test_none_is_refused_with_where_it_may_come_from(sess):
    with pytest.raises(fb.errors.InvalidTypeError, match=r"(?s)^None cannot be fetched.*gradient"):
        sess.run(None)
