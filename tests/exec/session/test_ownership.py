"""What a run returns is the caller's alone; what was fed stays the caller's.

Each test tries to catch an array changing behind its owner's back, through every operation whose
result may share its input's memory.
"""

import ctypes

import numpy as np
import pytest

import flowbook as fb

ALIASES = {
    "itself": lambda x: x,
    "identity": fb.identity,
    "stop_gradient": fb.stop_gradient,
    "prevent_gradient": fb.prevent_gradient,
    "reshape": lambda x: fb.reshape(x, [3, 2]),
    "transpose": fb.transpose,
    "slice": lambda x: fb.slice(x, [0, 1], [2, 2]),
    "key": lambda x: x[::-1, 1:],
    "row": lambda x: x[1],
    "ellipsis": lambda x: x[..., None],
    "expand_dims": lambda x: fb.expand_dims(x, 1),
    "squeeze": lambda x: fb.squeeze(fb.expand_dims(x, 0)),
    "broadcast_to": lambda x: fb.broadcast_to(x, [2, 2, 3]),
    "split": lambda x: fb.split(x, 3, axis=1)[1],
    "unstack": lambda x: fb.unstack(x)[1],
    "cast": lambda x: fb.cast(x, fb.float32),
    "sum over nothing": lambda x: fb.reduce_sum(x, axis=[]),
    "add_n of one": lambda x: fb.add_n([x]),
    "where": lambda x: fb.where(fb.constant(True), x, x),
    "users_kernel": lambda x: returns_input(x),
    "users_view": lambda x: returns_view(x),
    "users_expression": lambda x: expression(x),
}

returns_input = fb.OpDef("ReturnsInput", "x: float32 -> y: float32", kernel=lambda xp, x: x)
returns_view = fb.OpDef("ReturnsView", "x: float32 -> y: float32", kernel=lambda xp, x: x[::-1])
expression = fb.OpDef("PlusNothing", "x: float32 -> y: float32", expression="x")

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)

RUNS = 3  # By the reference, then as generated code.


@pytest.fixture
def sess():
    with fb.Session() as session:
        yield session


@pytest.fixture(params=ALIASES)
def alias(request):
    return ALIASES[request.param]


def spoil(*arrays):
    for array in arrays:
        array[...] = -100.0


def test_a_fetched_alias_of_a_feed(sess, alias):
    x = fb.placeholder(fb.float32, [2, 3])
    y, total = alias(x), fb.reduce_sum(x)
    for _ in range(RUNS):
        given = VALUES.copy()
        found, whole = sess.run([y, total], {x: given})
        kept = found.copy()
        assert not np.shares_memory(found, given)
        spoil(given)
        np.testing.assert_array_equal(found, kept)
        spoil(found)
        assert whole == VALUES.sum()


def test_a_fed_array_is_not_written(sess, alias):
    x = fb.placeholder(fb.float32, [2, 3])
    v = fb.Variable(fb.zeros([2, 3]))
    y = fb.negative(alias(x)) * 2.0
    step = fb.assign_add(v, x)
    given = VALUES.copy()
    for _ in range(RUNS):
        spoil(sess.run([y, step, x], {x: given})[0])
        np.testing.assert_array_equal(given, VALUES)
    given.flags.writeable = False
    spoil(*sess.run([y, step, x], {x: given}))


def test_a_fetched_alias_of_a_constant(sess, alias):
    c = fb.constant(VALUES)
    y = alias(c)
    expected = sess.run(y).copy()
    for _ in range(RUNS):
        found, all_of_it = sess.run([y, c])
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(all_of_it, VALUES)
        spoil(found, all_of_it)


def test_an_array_that_became_a_constant_is_the_callers_again(sess, alias):
    values = VALUES.copy()
    y = alias(fb.constant(values))
    spoil(values)
    assert sess.run(y).min() >= 0.0


def test_a_fetched_alias_of_a_variable(sess, alias):
    v = fb.Variable(VALUES)
    y = alias(v.value)
    update = fb.assign_add(v, fb.ones([2, 3]))
    rows = fb.scatter_add(v, [0, 1], fb.ones([2, 3]))
    expected = sess.run(y).copy()
    for _ in range(RUNS):
        before = sess.run([y, v])
        after = sess.run([update, y, v])
        sess.run(rows)
        np.testing.assert_array_equal(before[0], expected)
        np.testing.assert_array_equal(after[1], expected)  # The read comes before the update.
        np.testing.assert_array_equal(after[0], after[2] + 1.0)
        spoil(*before, *after)
        sess.run(fb.assign(v, VALUES))
        np.testing.assert_array_equal(sess.run(v), VALUES)


def test_an_assigned_array_is_the_callers_again(sess, alias):
    x = fb.placeholder(fb.float32, [2, 3])
    y = alias(x)
    v = fb.Variable(y, name="v")
    writes = [fb.assign(v, y), fb.assign_add(v, y)]
    with fb.Session(auto_initialize=False) as sess:
        for write in (*writes, *writes, *writes):
            given = VALUES.copy()
            sess.run(writes[0].op, {x: given})
            spoil(given)
            fetched = sess.run(write, {x: VALUES})
            held = sess.run(v)
            np.testing.assert_array_equal(fetched, held)
            spoil(fetched)
            np.testing.assert_array_equal(sess.run(v), held)


def test_an_initial_value_is_the_callers_again(alias):
    x = fb.placeholder(fb.float32, [2, 3])
    v = fb.Variable(alias(x))
    w = fb.Variable(alias(v.value) if v.shape == [2, 3] else v.value)
    with fb.Session() as sess:
        given = VALUES.copy()
        first = sess.run([v, w], {x: given})
        spoil(given, *first)
        assert sess.run(v).min() >= 0.0
        sess.run(fb.assign_sub(v, v.value))
        assert sess.run(w).max() > 0.0


def test_separately_fetched_aliases_do_not_share(sess, alias):
    x = fb.placeholder(fb.float32, [2, 3])
    a = fb.negative(x)
    for fetches in ([a, alias(a)], [alias(a), a], [alias(a), alias(a)], [a, a], [alias(a)] * 2):
        for _ in range(RUNS):
            one, other = sess.run(fetches, {x: VALUES})
            assert not np.shares_memory(one, other)
            kept = other.copy()
            spoil(one)
            np.testing.assert_array_equal(other, kept)
            spoil(other)


def test_every_element_that_is_fetched_is_the_callers_own(sess, alias):
    x = fb.placeholder(fb.float32, [2, 3])
    y = alias(fb.negative(x))
    for _ in range(RUNS):
        found = sess.run(y, {x: VALUES})
        assert found.flags.writeable
        found[...] = np.arange(found.size).reshape(found.shape)
        assert found.ravel().tolist() == list(range(found.size))  # No two of them are one.


def test_the_parts_of_one_array_do_not_share(sess):
    x = fb.placeholder(fb.float32, [2, 3])
    a = fb.negative(x)
    parts = [*fb.split(a, 3, axis=1), *fb.unstack(a), a]
    for _ in range(RUNS):
        found = sess.run(parts, {x: VALUES})
        for part in found:
            spoil(part)
        assert not any(
            np.shares_memory(one, other) for i, one in enumerate(found) for other in found[i + 1 :]
        )


def test_a_function_gets_read_only_arrays(sess, alias):
    seen = []

    def f(value):
        seen.append(value)
        with pytest.raises(ValueError, match="read-only"):
            value[...] = 0.0
        return value

    x = fb.placeholder(fb.float32, [2, 3])
    v = fb.Variable(VALUES)
    results = [
        fb.py_func(f, [alias(source)], fb.float32)
        for source in (x, v.value, fb.constant(VALUES), fb.negative(x))
    ]
    for _ in range(RUNS):
        given = VALUES.copy()
        found = sess.run([*results, x, v], {x: given})
        for result, value in zip(found, seen, strict=False):
            assert not np.shares_memory(result, value)
        spoil(*found)
        np.testing.assert_array_equal(given, VALUES)
        np.testing.assert_array_equal(sess.run(v), VALUES)
        seen.clear()


def _by_flag(array):
    array.flags.writeable = True
    array[...] = -1.0


def _by_base(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
        _by_flag(array)


def _by_address(array):
    """As `torch.from_numpy` gives a tensor that can be written to."""
    address = array.__array_interface__["data"][0]
    memory = (ctypes.c_byte * array.nbytes).from_address(address)
    np.frombuffer(memory, array.dtype)[...] = -1.0


@pytest.mark.parametrize("write", [_by_flag, _by_base, _by_address])
def test_a_function_that_writes_all_the_same_harms_nobody(sess, alias, write):
    x = fb.placeholder(fb.float32, [2, 3])
    v = fb.Variable(VALUES)
    constant = fb.constant(VALUES)
    middle = fb.negative(x)
    sources = (x, v.value, constant, middle)
    calls = [fb.py_func(write, [alias(source)], []) for source in sources]
    with fb.control_dependencies(calls):
        after = [fb.identity(source) for source in sources]
    for _ in range(RUNS):
        given = VALUES.copy()
        found = sess.run([*calls, *after], {x: given})[len(calls) :]
        for value, wanted in zip(found, (VALUES, VALUES, VALUES, -VALUES), strict=True):
            np.testing.assert_array_equal(value, wanted)
        np.testing.assert_array_equal(given, VALUES)
        np.testing.assert_array_equal(sess.run(v), VALUES)


def test_no_view_of_a_variable_can_be_made_writeable(sess):
    def kernel(xp, x):
        with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
            x.flags.writeable = True
        return x

    forcing = fb.OpDef("Forcing", "x: float32 -> y: float32", kernel=kernel, aliases={0: 0})
    v = fb.Variable(VALUES)
    y = forcing(v.value)
    writes = [
        fb.assign_add(v, fb.zeros([2, 3])),
        fb.assign(v, VALUES),
        fb.scatter_add(v, [0], fb.zeros([1, 3])),
        fb.scatter_update(v, [0], VALUES[:1]),
    ]
    for write in writes:
        for _ in range(RUNS):
            np.testing.assert_array_equal(sess.run(y), VALUES)
            sess.run(write.op)
    with pytest.raises(fb.errors.InvalidArgumentError):
        sess.run(fb.assign_add(v, fb.placeholder_with_default(np.zeros([3, 3]), None)))
    np.testing.assert_array_equal(sess.run(y), VALUES)


def test_what_a_function_keeps_is_not_a_results_memory(sess):
    kept = np.zeros(3, np.float32)
    y = fb.py_func(lambda: [kept, kept], [], [fb.float32, fb.float32])
    v = fb.Variable(fb.zeros([3]))
    step = fb.assign(v, fb.reshape(y[0], [3]))
    for count in range(RUNS):
        kept[:] = count
        one, other, _ = sess.run([*y, step])
        kept[:] = -1.0
        assert one.tolist() == other.tolist() == [count] * 3
        assert sess.run(v).tolist() == [count] * 3
        spoil(one)
        assert other.tolist() == [count] * 3


def test_a_variable_read_by_a_function_keeps_its_value(sess):
    seen = []
    v = fb.Variable(VALUES)
    look = fb.py_func(lambda value: seen.append(value), [v], [])
    update = fb.assign_add(v, fb.ones([2, 3]))
    for count in range(RUNS):
        sess.run(look)
        sess.run(update.op)
        for earlier, value in enumerate(seen):
            np.testing.assert_array_equal(value, VALUES + earlier)
        assert len(seen) == count + 1


def test_partial_runs(sess, alias):
    x, late = fb.placeholder(fb.float32, [2, 3]), fb.placeholder(fb.float32, [])
    v = fb.Variable(VALUES)
    y, z = alias(x), alias(v.value)
    w = alias(fb.negative(x))
    ends = [fb.reduce_sum(tensor) * late for tensor in (x, y, z, w, v.value)]
    expected = sess.run(ends, {x: VALUES, late: 2.0})
    update = fb.assign_add(v, fb.ones([2, 3]))
    for _ in range(RUNS):
        given = VALUES.copy()
        step = sess.partial_run([x, y, z, w, v, ends], [x, late])
        first = step.run([x, y, z, w, v], {x: given})
        spoil(given, *first)
        sess.run(update.op)
        assert step.run(ends, {late: 2.0}) == expected
        sess.run(fb.assign(v, VALUES).op)


def test_strings(sess):
    x = fb.placeholder(fb.string, [2])
    c = fb.constant([b"a", b"b"])
    for tensor in (x, fb.identity(x), fb.reshape(x, [2, 1]), c, fb.reshape(c, [1, 2])):
        for _ in range(RUNS):
            given = np.array([b"a", b"b"], object)
            found = sess.run(tensor, {x: given})
            found[...] = b"spoilt"
            assert given.tolist() == [b"a", b"b"]
            assert sess.run(tensor, {x: given}).ravel().tolist() == [b"a", b"b"]
