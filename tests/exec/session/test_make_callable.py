"""Functions that run one signature."""

import numpy as np
import pytest

import flowbook as fb


@pytest.fixture
def sess():
    with fb.Session() as session:
        yield session


def test_a_callable_takes_the_fed_values_in_order(sess):
    x, y = fb.placeholder(fb.float32, []), fb.placeholder(fb.float32, [], name="y")
    f = sess.make_callable({"d": x - y, "s": [x + y]}, [x, "y:0"])
    for _ in range(3):
        assert f(5.0, 3.0) == {"d": 2.0, "s": [8.0]}
    assert sess.make_callable(x * 0.0 + 1.0, (x,))(3) == 1.0


def test_without_feeds(sess):
    v = fb.Variable(0.0)
    step = sess.make_callable(fb.assign_add(v, 1.0))
    assert [step(), step(), step()] == [1.0, 2.0, 3.0]


def test_the_graph_may_grow_meanwhile(sess):
    x = fb.placeholder(fb.float32, [])
    f = sess.make_callable(x + 1.0, [x])
    assert f(1.0) == 2.0
    fb.constant(1.0)
    assert f(1.0) == 2.0


def test_a_wrong_number_of_values(sess):
    x = fb.placeholder(fb.float32, [])
    f = sess.make_callable(x, [x])
    for values in ((), (1.0, 2.0)):
        with pytest.raises(TypeError, match=f"1 value to feed, {len(values)} given"):
            f(*values)


def test_values_are_checked(sess):
    x = fb.placeholder(fb.float32, [2], name="x")
    f = sess.make_callable(x, [x])
    with pytest.raises(ValueError, match="dimension 0 is 3"):
        f(np.ones(3))


def test_the_signature_is_checked_at_once(sess):
    x, y = fb.placeholder(fb.float32, [], name="x"), fb.placeholder(fb.float32, [])
    with pytest.raises(ValueError, match="must be fed"):
        sess.make_callable(x + y, [x])
    with pytest.raises(TypeError, match="cannot be fetched"):
        sess.make_callable([None], [])
    for feeds in ([x, "x:0"], [x, x]):
        with pytest.raises(ValueError, match="fed twice"):
            sess.make_callable(x, feeds)
    for feeds in (x, "x:0", {x: 1.0}):
        with pytest.raises(TypeError, match="feeds is a list"):
            sess.make_callable(x, feeds)
