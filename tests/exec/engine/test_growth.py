"""Signatures that add to earlier ones: what first runs prepare, and that nothing else differs."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.engine import segment
from flowbook.exec.engine.code import generate
from flowbook.exec.engine.initialisation import Initialisation
from flowbook.exec.local import kept_programs, placing
from flowbook.exec.plan import pipeline
from flowbook.graph.ops.state.variables import assign_op
from tests.exec.engine.test_executors_agree import spoil
from tests.exec.engine.test_joint import scatter
from tests.exec.random_graphs import delayed, examples
from tests.exec.state.test_handles import through_one


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many operations each preparation went through."""
    monkeypatch.setattr(pipeline, "LEAST_TO_GROW", 3)
    sizes: list[int] = []

    def counted(signature: Any, devices: Any, base: Any, *homes: Any) -> Any:
        found = grow(signature, devices, base, *homes)
        before = len(base.prepared.operations) if base is not None else 0
        sizes.append(len(found.prepared.operations) - before)
        return found

    grow = placing.grow
    monkeypatch.setattr(placing, "grow", counted)
    return sizes


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many units each function has that is written of a stretch of eight at most."""
    monkeypatch.setattr(segment, "LONGEST", 8)
    sizes: list[int] = []

    def counted(units: Any, *others: Any) -> Any:
        sizes.append(len(units))
        return on_values(units, *others)

    on_values = segment.on_values
    monkeypatch.setattr(segment, "on_values", counted)
    return sizes


@pytest.fixture
def sess() -> Iterator[fb.Session]:
    with fb.Session() as sess:
        yield sess


def chain(x: Any, length: int = 20) -> Any:
    for _ in range(length):
        x = fb.maximum(x, fb.constant(-1, x.dtype))
    return x


def test_what_was_added_alone_is_prepared(sess: fb.Session, prepared: list[int]) -> None:
    x = fb.placeholder(fb.float32, [2])
    y = chain(x)
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    sess.run(y, feeds)
    assert prepared == [40]
    ends = [y]
    for turn in range(5):
        ends.append(fb.add(ends[-1], 1.0))
        for _ in range(3):
            assert sess.run(ends[-1], feeds).tolist() == [2.0 + turn, 3.0 + turn]
    assert prepared == [40, 2, 2, 2, 2, 2]
    # Fetched beside it; what takes two ways; and what was fetched before, not any more.
    z = fb.add(ends[-1], fb.exp(ends[-1]) * 0.0)
    assert [v.tolist() for v in sess.run([z, ends[-1]], feeds)] == [[6.0, 7.0]] * 2
    inner = fb.add(z, ends[-1]) + ends[2]
    assert sess.run(inner, feeds).tolist() == [15.0, 18.0]
    assert prepared[6:] == [4, 2]


def test_a_constant_that_is_there_is_not_prepared_again(
    sess: fb.Session, prepared: list[int]
) -> None:
    x = fb.placeholder(fb.float32, [2])
    c = fb.constant([3.0, 4.0])
    y = chain(x) * c
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    sess.run(y, feeds)
    assert prepared == [42]
    with fb.control_dependencies([c.op]):
        z = y + c
    for _ in range(3):
        assert sess.run(z, feeds).tolist() == [6.0, 12.0]
        assert [each.tolist() for each in sess.run([z, c], feeds)] == [[6.0, 12.0], [3.0, 4.0]]
    assert prepared == [42, 1, 0]


def test_a_constant_like_one_that_is_gone_is_prepared(
    sess: fb.Session, prepared: list[int]
) -> None:
    x = fb.placeholder(fb.float32, [2])
    # What is computed from them before the run stays; they have the same bits.
    y = chain(x) + fb.exp([0.0, 0.0]) + fb.cast(fb.constant([0, 0]) + 1, fb.float32)
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    assert sess.run(y, feeds).tolist() == [3.0, 4.0]
    z = fb.add(fb.cast(y, fb.int32), [0, 0])
    assert sess.run(z, feeds).tolist() == [3, 4]
    assert sess.run(fb.add(y, [0.0, 0.0]), feeds).tolist() == [3.0, 4.0]
    assert prepared[1:] == [3, 2]


def test_stretches_of_equal_shape_are_compiled_once(
    sess: fb.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "LONGEST", 8)
    x = y = fb.placeholder(fb.int64, [])
    tables = np.tile(np.arange(4), (40, 1))
    tables[21, 2] = 7
    tables[22, 3] = 1
    for number, table in enumerate(tables):
        y = fb.gather(fb.constant(table), y, name=f"look{number}")
    generate._compiled.cache_clear()
    for _ in range(4):
        assert sess.run(y, {x: 0}) == 0
        assert sess.run(y, {x: 3}) == 1
    # The first begins with what is fed, and the last ends with what is fetched.
    found = generate._compiled.cache_info()
    assert (found.misses, found.hits) == (3, 2)
    # What fails is found in the stretch that it is in.
    for _ in range(2):
        with pytest.raises(fb.errors.InvalidArgumentError) as raised:
            sess.run(y, {x: 2})
        assert raised.value.operation.name == "look22"
        assert sess.run(y, {x: 1}) == 1


def test_on_several_devices_what_was_placed_stays(prepared: list[int]) -> None:
    x = fb.placeholder(fb.float32, [2])
    with fb.device("cpu:1"):
        W = fb.Variable([1.0, 2.0], name="W")
        h = chain(x * W)
    with fb.device("cpu:0"):
        y = fb.add(h, 1.0)
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    with fb.Session(cpus=2) as sess:
        assert sess.run(y, feeds).tolist() == [2.0, 5.0]
        del prepared[:]
        with fb.control_dependencies([h.op]):
            read = fb.identity(W)
        more, drawn = fb.exp(h) * 0.0 + y, read + fb.random_uniform([2])
        for _ in range(3):
            assert sess.run([more, y], feeds)[0].tolist() == [2.0, 5.0]
            assert (sess.run([y, drawn], feeds)[1] >= [1.0, 2.0]).all()
        placement = sess._master._programs.all[-1].placement
        assert placement.device_of(read.op.inputs[0].op).name.endswith("cpu:1")
        assert len(prepared) == 2
        assert max(prepared) < 10


def test_what_is_new_goes_where_its_inputs_are(prepared: list[int]) -> None:
    x = fb.placeholder(fb.float32, [1000])
    with fb.device("cpu:1"):
        h = chain(x)
    with fb.Session(cpus=2) as sess:
        sess.run(h, {x: np.ones(1000)})
        more = fb.exp(h, name="more")
        sess.run(more, {x: np.ones(1000)})
        placement = sess._master._programs.all[-1].placement
    assert placement.device_of(more.op).name.endswith("cpu:1")
    assert placement.reason(more.op).startswith("it would end first there")
    assert prepared[-1] == 1


def devices_of(sess: fb.Session, *tensors: Any) -> list[str]:
    """The devices that the latest program has tensors made on."""
    placement = sess._master._programs.all[-1].placement
    return [placement.device_of(tensor.op).name.rpartition("device:")[2] for tensor in tensors]


@pytest.mark.parametrize("devices", [["cpu:0"], ["cpu:0", "cpu:1"], ["cpu:0", "simulated:0"]])
def test_what_asks_for_a_device_is_prepared_alone(prepared: list[int], devices: list[str]) -> None:
    x = fb.placeholder(fb.float32, [2])
    with fb.device(devices[-1]):
        y = chain(x)
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    with fb.Session(devices=devices) as sess:
        sess.run(y, feeds)
        with fb.device(devices[-1]):
            there = y + 1.0
        with fb.device("cpu:0"):
            here = y * 2.0
        with fb.device(devices[-1]):
            known = fb.exp([0.0, 0.0])
        with fb.colocate_with(y.op):
            beside = fb.negative(y)
        for _ in range(3):
            found = sess.run([y, there, here + known, beside], feeds)
            assert [v.tolist() for v in found] == [[1, 2], [2, 3], [3, 5], [-1, -2]]
        assert devices_of(sess, y, there, here, known, beside) == [
            devices[-1],
            devices[-1],
            "cpu:0",
            devices[-1],
            devices[-1],
        ]
        assert max(prepared[1:]) < 10
        with fb.device("gpu:0"):
            nowhere = fb.negative(y), y + fb.exp([0.0, 0.0])
        for each in nowhere:
            with pytest.raises(fb.errors.InvalidArgumentError, match="none of the devices"):
                sess.run([y, each], feeds)
    with fb.Session(devices=devices, soft_placement=True) as sess:
        assert sess.run([y, nowhere[0]], feeds)[1].tolist() == [-1.0, -2.0]


@pytest.mark.parametrize("case", ["elsewhere", "apart"])
def test_what_would_have_to_move_is_placed_anew(prepared: list[int], case: str) -> None:
    x = fb.placeholder(fb.float32, [2])
    y = chain(x)
    other = chain(x * 1.0)
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    with fb.Session(cpus=2) as sess:
        with pytest.MonkeyPatch.context() as patched:
            scatter(patched, 3)
            sess.run([y, other], feeds)
        first, second = devices_of(sess, y, other)
        assert first != second
        match case:
            case "elsewhere":
                with fb.colocate_with(y.op), fb.device(second):
                    new = fb.negative(y)
            case "apart":
                with fb.colocate_with(y.op), fb.colocate_with(other.op):
                    new = y - other - y
        assert sess.run([y, other, new], feeds)[2].tolist() == [-1.0, -2.0]
        found = devices_of(sess, y, other, new)
        assert found[0] == found[2]
        assert found[2] == (second if case == "elsewhere" else found[1])
        assert max(prepared[1:]) > 10


@pytest.mark.parametrize("beside", [False, True])
def test_one_operation_more_on_the_loss_of_a_training(
    sess: fb.Session, prepared: list[int], beside: bool
) -> None:
    x = fb.placeholder(fb.float32, [None, 3])
    W = fb.Variable(np.ones((3, 2), np.float32), name="W")
    loss = fb.reduce_mean(fb.square(chain(x @ W)))
    train = fb.train.AdamOptimizer(0.1).minimize(loss)
    feeds = {x: np.ones((4, 3), np.float32)}
    sess.run([train, loss], feeds)
    prepared.clear()
    more = fb.sqrt(loss) if beside else fb.sqrt(loss) + fb.random_uniform([])
    expected, _, found = sess.run([loss, train, more], feeds)
    assert 0 < sum(prepared) < 10
    assert np.sqrt(expected) <= found <= np.sqrt(expected) + 1
    assert sess.run(W).max() < 1.0


def test_a_guard_rewrites_what_was_not_grown(sess: fb.Session, prepared: list[int]) -> None:
    x = fb.placeholder(fb.float32, [None, 3])
    W = fb.Variable(np.ones((3, 2), np.float32), name="W")
    loss = fb.reduce_mean(fb.square(chain(x @ W)))
    train = fb.train.AdamOptimizer(0.1).minimize(loss)
    feeds = {x: np.ones((4, 3), np.float32)}
    sess.run([train, loss], feeds)
    more = fb.log(loss - 1.0, name="logs")
    with sess.guard():
        before = sess.run(W)
        for turn in range(3):
            assert np.isfinite(sess.run([train, loss, more], feeds)[2])
            changed = sess.run(W)
            assert (changed < before).all(), turn
            with pytest.raises(fb.errors.InvalidArgumentError, match="'logs'"):
                sess.run([train, loss, more], {x: np.zeros((4, 3), np.float32)})
            np.testing.assert_array_equal(sess.run(W), changed)
            before = changed


def test_writes_happen_once(sess: fb.Session, prepared: list[int]) -> None:
    counter = fb.Variable(0.0)
    y = chain(fb.assign_add(counter, 1.0))
    assert sess.run(y) == 1.0
    count = len(prepared)
    assert sess.run(fb.add(y, 0.5)) == 2.5
    assert sess.run(counter) == 2.0
    assert prepared[count] == 2


def test_a_new_operation_may_read_what_is_not_written_and_draw(
    sess: fb.Session, prepared: list[int]
) -> None:
    variable = fb.Variable(5.0)
    y = chain(fb.constant(1.0) + fb.random_uniform([], seed=1) * 0.0)
    sess.run([variable, y])
    prepared.clear()
    new = y + variable
    assert sess.run([new, variable]) == [6.0, 5.0]
    assert max(prepared) < 10


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_new_operation_may_write_what_nothing_touches_beside_a_training(
    prepared: list[int], cpus: int
) -> None:
    x = fb.placeholder(fb.float32, [3])
    W = fb.Variable([1.0, 2.0, 3.0], name="W")
    loss = fb.reduce_sum(chain(x * W) ** 2.0)
    train = fb.train.GradientDescentOptimizer(0.01).minimize(loss)
    feeds = {x: [1.0, 1.0, 1.0]}
    with fb.Session(cpus=cpus) as sess:
        sess.run([train, loss], feeds)
        prepared.clear()
        total, last = fb.Variable(0.0, name="total"), fb.Variable(0.0, name="last")
        before = fb.identity(last)
        noted = fb.assign(last, loss)
        with fb.control_dependencies([noted]):
            added = fb.assign_add(total, loss - before)
        twice = fb.assign_add(total, 1.0)
        seen = []
        for turn in range(1, 5):
            loss_now, _, old, _, found = sess.run([loss, train, before, added, twice], feeds)
            assert old == (seen[-1] if seen else 0.0)
            seen.append(loss_now)
            assert found == pytest.approx(loss_now + turn)
        assert sess.run(last) == seen[-1] < seen[0]
        assert max(prepared) < 20


@pytest.mark.parametrize("case", ["value", "rows", "after"])
def test_a_new_operation_may_read_as_what_is_there_does_before_a_write(
    sess: fb.Session, prepared: list[int], case: str
) -> None:
    """One more look at a weight in each step of a training."""
    ids = fb.placeholder(fb.int32, [1], name="ids")
    W = fb.Variable([[2.0], [3.0]], name="W")
    rows = fb.gather(W, ids)
    loss = fb.reduce_sum(chain(rows) * W)
    train = fb.train.GradientDescentOptimizer(0.1).minimize(loss)
    feeds = {ids: [0]}
    sess.run([loss, train], feeds)
    sess.reset()
    prepared.clear()
    match case:
        case "value":
            seen = fb.reduce_max(W * 1.0)
        case "rows":
            seen = fb.reduce_max(fb.gather(W, ids))
        case "after":
            with fb.control_dependencies([train]):
                seen = fb.reduce_max(W * 1.0)
    for turn in range(3):
        before = sess.run(W)
        found, _, _ = sess.run([seen, loss, train], feeds)
        expected = {"value": before, "rows": before[:1], "after": sess.run(W)}[case]
        assert found == expected.max(), turn
    assert max(prepared) < 10


@pytest.mark.parametrize("is_small", [True, False])
def test_what_is_looked_at_meanwhile_does_not_cost_what_others_begin_with(
    sess: fb.Session, prepared: list[int], is_small: bool
) -> None:
    x = fb.placeholder(fb.float32, [2])
    y = chain(x)
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    sess.run(y, feeds)
    for turn in range(2 * kept_programs.MOST_BASES):
        sess.run(fb.add(x if is_small else y, float(turn)), feeds)
    prepared.clear()
    assert sess.run(fb.exp(y), feeds).shape == (2,)
    assert prepared == [1]


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("how", ["built again", "waited for", "run", "fetched"])
def test_what_was_joined_with_others(
    sess: fb.Session, prepared: list[int], how: str, waits: bool
) -> None:
    """Who waits for a product that is part of a sum waits for that; who takes it has it made."""
    columns = [fb.placeholder(fb.float32, [2, 50]) for _ in range(3)]
    products = [fb.matmul(each, each, transpose_a=True) for each in columns]
    total = fb.add_n(products)
    y = chain(columns[0])
    feeds = {each: np.ones((2, 50), np.float32) for each in columns}
    given: list[Any] = [total, y, delayed(y)[0]] if waits else [total, y]
    sess.run(given, feeds)
    (whole,) = prepared
    assert sess._master._programs.all[-1].went[products[0].op].startswith("joined")
    new: Any
    match how:
        case "built again":
            new, expected = fb.matmul(columns[0], columns[0], transpose_a=True) + 1.0, 3.0
        case "waited for":
            with fb.control_dependencies([products[0].op]):
                new, expected = fb.reduce_sum(y) * 0.0 + 3.0, 3.0
        case "run":
            new, expected = products[0].op, None
        case "fetched":
            new, expected = products[0], 2.0
    for _ in range(3):
        found = sess.run([*given, new], feeds)
        assert (found[0] == 6.0).all()
        assert found[-1] is None if expected is None else (found[-1] == expected).all()
    assert prepared[0] == whole
    assert sum(prepared[1:]) < 8


def test_what_a_kept_call_gives_is_there(sess: fb.Session, prepared: list[int]) -> None:
    doubled = fb.function(lambda x: (chain(x + x), chain(x)), inline=False)
    x = fb.placeholder(fb.float32, [2])
    y, other = doubled(x)
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    assert sess.run(y, feeds).tolist() == [2.0, 4.0]
    prepared.clear()
    assert sess.run(y + 1.0, feeds).tolist() == [3.0, 5.0]
    # Of its other result nothing has run.
    assert [each.tolist() for each in sess.run([y, other], feeds)] == [[2.0, 4.0], [1.0, 2.0]]
    with fb.control_dependencies([y.op]):
        later = fb.negative(other)
    assert sess.run([y, other, later], feeds)[2].tolist() == [-1.0, -2.0]
    assert prepared == [3, 41, 2]


@pytest.mark.parametrize("acts", [False, True])
def test_a_new_call_is_what_it_stands_for(
    sess: fb.Session, prepared: list[int], acts: bool
) -> None:
    """A function that writes, or reads what is written, is no more and no less than a copy."""
    W, other = fb.Variable(1.0), fb.Variable(1.0)
    x = fb.placeholder(fb.float32, [])
    y = chain(x * other)
    added = fb.assign_add(W, y)

    def body(value: Any) -> Any:
        with fb.control_dependencies([fb.assign_add(other, value)] if acts else []):
            return value * W

    called = fb.function(body, inline=False)
    squared = fb.function(lambda value: value * value, inline=False)
    feeds = {x: 3.0}
    assert sess.run([y, added], feeds) == [3.0, 4.0]
    prepared.clear()
    assert sess.run([y, added, squared(y)], feeds) == [3.0, 7.0, 9.0]
    assert prepared == [2]
    assert sess.run([y, added, called(y)], feeds) == [3.0, 10.0, 21.0]
    assert sess.run(other) == (4.0 if acts else 1.0)
    with fb.control_dependencies([called(0.5).op]):
        waits = fb.negative(y)
    found = sess.run([y, added, waits], feeds)
    assert found == ([12.0, 22.0, -12.0] if acts else [3.0, 13.0, -3.0])
    assert sess.run(other) == (4.5 if acts else 1.0)


def test_products_that_are_there_are_added_up(sess: fb.Session, prepared: list[int]) -> None:
    """They are computed in any case, and joined into no sum."""
    columns = [fb.placeholder(fb.float32, [2, 50]) for _ in range(3)]
    products = [fb.matmul(each, each, transpose_a=True) for each in columns]
    y = chain(columns[0])
    feeds = {each: np.ones((2, 50), np.float32) for each in columns}
    sess.run([*products, y], feeds)
    total = fb.add_n(products)
    for _ in range(3):
        assert (sess.run([total, y], feeds)[0] == 6.0).all()
    assert prepared[1:] == [1]
    assert not sess._master._programs.all[-1].went.keys() & {each.op for each in products}


@pytest.mark.parametrize(
    "case",
    [
        "read",
        "earlier write",
        "earlier effect",
        "crossing",
        "other feeds",
        "part",
        "late",
    ],
)
def test_what_is_prepared_as_a_whole(sess: fb.Session, prepared: list[int], case: str) -> None:
    """All that it was, and more, but for the case in question."""
    variable, other = fb.Variable([1.0, 1.0]), fb.Variable([2.0, 3.0])
    x = fb.placeholder(fb.float32, [2])
    y = chain(x)
    more = fb.negative(chain(x, 2))
    feeds: dict[Any, Any] = {x: np.array([1.0, 2.0], np.float32)}
    new: Any = fb.add(y, 1.0)
    fetched: list[Any] = [y]
    noted: list[str] = []
    match case:
        case "read":
            # It sees the value from before the write that is there already.
            fetched, new = [y, fb.assign_add(variable, y)], new + variable
        case "earlier write":
            new = fb.assign(variable, new)
            fetched = [y, fb.assign_add(variable, y)]
        case "earlier effect":
            new = fb.py_func(lambda: noted.append("first"), [], [])
            fetched = [y, fb.py_func(lambda: noted.append("second"), [], [])]
        case "crossing":
            # What is there is read before it is written, but for an order that new ones bring.
            with fb.control_dependencies([fb.assign_add(variable, [1.0, 1.0])]):
                new = other + 0.0
            with fb.control_dependencies([fb.assign(other, [0.0, 0.0])]):
                fetched = [y, variable + 0.0]
        case "part":
            fetched = [y, more]
    sess.run(fetched, feeds)
    sess.reset()
    if case == "other feeds":
        feeds[more] = feeds[x]
    prepared.clear()
    noted.clear()
    if case == "late":
        step = sess.partial_run([new], [x])
        found = step.run([new], feeds)
    else:
        found = sess.run([new, *(fetched if case != "part" else [y])], feeds)
    match case:
        case "read":
            np.testing.assert_array_equal(found[0], [3.0, 4.0])
        case "earlier write":
            np.testing.assert_array_equal(found[2], [3.0, 5.0])
        case "earlier effect":
            assert noted == ["first", "second"]
        case "crossing":
            np.testing.assert_array_equal(found[0], [2.0, 3.0])
            np.testing.assert_array_equal(found[2], [2.0, 2.0])
        case _:
            np.testing.assert_array_equal(found[0], [2.0, 3.0])
    assert max(prepared) > 10


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize(
    "case",
    [
        "value",
        "rows",
        "table",
        "handed on",
        "late read",
        "read after",
        "again",
        "between",
        "is there",
        "fed",
    ],
)
def test_what_was_read_is_written_after_that(prepared: list[int], case: str, cpus: int) -> None:
    """A new write goes after all that is there."""
    W = fb.Variable([[1.0, 2.0], [3.0, 4.0]], name="W")
    table = fb.lookup.MutableHashTable(fb.string, fb.float32, default_value=1.0)
    x = fb.placeholder(fb.float32, [2])
    ones = np.ones((2, 2), np.float32)
    seen: Any = W + 0.0
    before: list[Any] = []
    if case == "table":
        seen = table.lookup(["key"])
    if case == "rows":
        seen = fb.gather(W, [1])
    if case in ("again", "between"):
        before = [fb.assign_add(W, ones)]
    y = chain(x * fb.reduce_sum(seen))
    feeds: dict[Any, Any] = {x: [1.0, 1.0]}
    if case == "fed":
        feeds[W] = 5.0 * ones
    with fb.Session(cpus=cpus) as sess:
        # For every step the value from before it, and what it adds.
        values = sess.run(W)
        sess.run([y, seen, W, *before], feeds)
        sess.reset()
        prepared.clear()
        new: list[Any] = [fb.assign_add(W, ones)]
        match case:
            case "rows":
                new = [fb.scatter_add(W, [1], ones[:1])]
            case "table":
                new = [table.insert(["key"], fb.reduce_max(y, keepdims=True))]
            case "handed on":
                typed = {"dtype": W.dtype, "shape": W.shape}
                new = [assign_op(through_one(W), seen + ones, **typed)]
            case "late read":
                new.append(fb.gather(W, [0]))
            case "read after":
                with fb.control_dependencies(new):
                    new.append(W * 1.0)
            case "between":
                with fb.control_dependencies(before):
                    new.append(W * 1.0)
            case "is there":
                new.append(fb.is_variable_initialized(W))
        for turn in range(3):
            found = sess.run([y, seen, W, *before, *new], feeds)
            start = values + turn * ones * (2.0 if before else 1.0)
            held = feeds.get(W, start)
            total = held.sum()
            match case:
                case "rows":
                    start = held = values + turn * np.array([[0.0], [1.0]], np.float32)
                    total = held[1].sum()
                    np.testing.assert_array_equal(found[1], held[1:])
                case "table":
                    # The maximum is what was found.
                    total = 1.0
                    start = held = values
                case "late read":
                    np.testing.assert_array_equal(found[-1], held[:1])
                case "read after" | "between":
                    np.testing.assert_array_equal(found[-1], held + ones)
                case "is there":
                    assert found[-1]
            np.testing.assert_array_equal(found[0], [total, total])
            np.testing.assert_array_equal(found[2], held)
            # It is the caller's own, whoever writes later.
            found[2][...] = np.nan
        assert max(prepared) < 10
        np.testing.assert_array_equal(np.isnan(sess.run(W)), np.zeros((2, 2)))


def test_a_new_write_waits_for_reads_that_wait(sess: fb.Session, prepared: list[int]) -> None:
    W = fb.Variable(5.0)
    x = fb.placeholder(fb.float32, [])
    more, _ = delayed(x)
    with fb.control_dependencies([more]):
        late = [W + 0.0, W * 2.0]
    fetched = [chain(x), *late]
    assert sess.run(fetched, {x: 3.0}) == [3.0, 5.0, 10.0]
    prepared.clear()
    written = fb.assign_add(W, 1.0)
    for turn in range(3):
        found = sess.run([*fetched, written], {x: 3.0}, timeout=30)
        assert found == [3.0, 5.0 + turn, 10.0 + 2 * turn, 6.0 + turn]
    assert max(prepared) < 10


def test_what_lets_go_of_a_mutex_is_prepared_with_what_holds_it(
    sess: fb.Session, prepared: list[int]
) -> None:
    total, seen = fb.Variable(1.0), fb.Variable(5.0)
    x = fb.placeholder(fb.float32, [])
    inside: list[Any] = []

    def section() -> Any:
        inside.append(fb.assign_add(total, 1.0))
        return inside[0]

    ends = fb.Mutex().execute(section)
    more, _ = delayed(x)
    with fb.control_dependencies([more]):
        late = seen + 0.0
    fetched = [chain(x), inside[0], late]
    assert sess.run(fetched, {x: 3.0}) == [3.0, 2.0, 5.0]
    written = fb.assign_add(seen, 1.0)
    assert sess.run([*fetched, ends, written], {x: 3.0}) == [3.0, 3.0, 5.0, 3.0, 6.0]
    assert prepared[-1] > 10


def test_what_acts_outside_goes_on_in_the_order_of_construction(
    sess: fb.Session, prepared: list[int]
) -> None:
    noted: list[int] = []
    effects = [fb.py_func(lambda i=i: noted.append(i), [], [], name=f"f{i}") for i in range(4)]
    y = chain(fb.placeholder(fb.float32, [2], name="x"))
    feeds = {"x": [1.0, 2.0]}
    for count, order in ((2, [1, 0]), (4, [3, 0, 2, 1])):
        for _ in range(3):
            noted.clear()
            sess.run([y, *[effects[i] for i in order]], feeds)
            assert noted == list(range(count))
    assert prepared == [42, 2]


def test_what_the_earlier_signature_does_not_compute_any_more(
    sess: fb.Session, prepared: list[int]
) -> None:
    """A value that was folded away, or passed on, is there for new operations all the same."""
    x = fb.placeholder(fb.float32, [2])
    first, folded = fb.constant([1.0, 2.0]), fb.exp([0.0, 0.0]) * 2.0
    passed = fb.identity(x)
    y = chain(passed + folded * first)
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    sess.run(y, feeds)
    prepared.clear()
    assert sess.run(y + folded + passed, feeds).tolist() == [6.0, 10.0]
    assert sess.run(y + fb.constant([1.0, 2.0]), feeds).tolist() == [4.0, 8.0]
    for _ in range(3):
        found = sess.run([y, folded, first, passed], feeds)
        assert [v.tolist() for v in found] == [[3.0, 6.0], [2.0, 2.0], [1.0, 2.0], [1.0, 2.0]]
    assert max(prepared) < 8


def test_what_has_been_written_is_not_written_again(
    sess: fb.Session, prepared: list[int], written: list[int]
) -> None:
    x = fb.placeholder(fb.float32, [2])
    y = chain(x, 20)
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    for _ in range(3):
        assert sess.run(y, feeds).tolist() == [1.0, 2.0]
    assert written == [8, 8, 4]
    z = fb.add(y, 1.0)
    assert sess.run(z, feeds).tolist() == [2.0, 3.0]
    assert written[3:] == []
    for _ in range(2):
        assert sess.run(z, feeds).tolist() == [2.0, 3.0]
    assert written[3:] == [1]
    # With what is as short it becomes one stretch.
    z = fb.add(z, 1.0)
    for _ in range(3):
        assert sess.run(z, feeds).tolist() == [3.0, 4.0]
    assert written[4:] == [2]
    for timeout in (100.0, None, 100.0):
        assert sess.run(fb.add(z, 1.0), feeds, timeout=timeout).tolist() == [4.0, 5.0]
    assert written[5:] == [8, 8, 4, 2]


def test_what_ran_in_two_programs_is_written_in_the_third(
    sess: fb.Session, prepared: list[int], written: list[int]
) -> None:
    x = fb.placeholder(fb.float32, [2])
    y = chain(x, 20)
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    sizes = []
    for turn in range(5):
        assert sess.run(y, feeds).tolist() == [1.0 + turn, 2.0 + turn]
        sizes.append(sum(written))
        y = fb.add(y, 1.0)
    assert sizes == [0, 0, 20, 20, 20]


def test_large_results_of_what_was_added_are_put_where_their_inputs_lay(
    sess: fb.Session, prepared: list[int]
) -> None:
    x = fb.placeholder(fb.float32, [1 << 14])
    y = chain(x)
    feeds = {x: np.ones(1 << 14, np.float32)}
    for turn in range(3):
        for _ in range(4):
            assert sess.run(y, feeds).tolist() == [1.0 + turn] * (1 << 14)
        y = fb.negative(fb.negative(y) - 1.0)
    assert prepared == [40, 4, 4]


@pytest.mark.parametrize("runs", [1, 3])
def test_a_value_that_is_needed_longer_than_before(
    sess: fb.Session, prepared: list[int], written: list[int], runs: int
) -> None:
    """Only the stretch in which it was let go is another one."""
    x = fb.placeholder(fb.float32, [2])
    inner = fb.exp(chain(x, 10))
    y = chain(inner, 10)
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    for _ in range(runs):
        sess.run(y, feeds)
    written.clear()
    e = np.exp(feeds[x])
    for fetches, expected in [
        (y + inner, 2 * e),
        ([y, inner], [e, e]),
        ([y - inner, inner, y], [0 * e, e, e]),
    ]:
        for _ in range(3):
            np.testing.assert_array_equal(sess.run(fetches, feeds), expected)
    if runs == 3:
        # The stretch with the value is written for the first two, and what is new.
        assert written == [8, 1, 8, 1]


@pytest.mark.parametrize("more", [150, 450])
def test_what_doubles_a_graph_is_prepared_with_it(
    sess: fb.Session, prepared: list[int], more: int
) -> None:
    x = fb.placeholder(fb.float32, [2])
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    y = chain(x, 200)
    sess.run(y, feeds)
    z = chain(y, more)
    assert sess.run(z, feeds).tolist() == [1.0, 2.0]
    assert prepared[1:] == [2 * more if more < 200 else 2 * (200 + more)]


def test_an_error_in_what_is_shared_names_its_operation(
    sess: fb.Session, prepared: list[int], written: list[int]
) -> None:
    x = fb.placeholder(fb.int32, [])
    y = chain(fb.gather([1, 2, 3], chain(x), name="picked"))
    for _ in range(3):
        assert sess.run(y, {x: 0}) == 1
    more = fb.negative(y)
    for timeout in (None, 100.0):
        with pytest.raises(fb.errors.OpError, match="'picked'"):
            sess.run(more, {x: 7}, timeout=timeout)
    with pytest.raises(fb.errors.DeadlineExceededError):
        sess.run(more, {x: 0}, timeout=0.0)
    assert sess.run(more, {x: 0}) == -1


def test_a_grown_program_lets_go_of_what_it_fetches_no_longer(
    sess: fb.Session, prepared: list[int], written: list[int]
) -> None:
    made: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def fresh(xp: Any, x: Any) -> Any:
        alive.append(sum(each() is not None for each in made))
        array = np.array(x)
        made.append(weakref.ref(array))
        return array

    op = fb.OpDef("Kept", "x: float32 -> y: float32", infer=lambda x: x.shape, kernel=fresh)
    x = fb.placeholder(fb.float32, [2])
    y = x
    for _ in range(12):
        y = op(y)
    feeds = {x: np.array([1.0, 2.0], np.float32)}
    first = y
    for fetches in (first, op(op(op(first))), [op(op(first)), first]):
        for _ in range(4):
            made.clear()
            alive.clear()
            sess.run(fetches, feeds)
            longer = [1, 2] if isinstance(fetches, list) else [1] * (len(alive) - 12)
            assert alive == [0, *[1] * 11, *longer]


def test_only_what_a_new_operation_touches_is_initialised(
    sess: fb.Session, prepared: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    prepare_for = Initialisation.prepare_for

    def counted(self: Any, operations: Any, *others: Any) -> None:
        asked.append(len(operations))
        prepare_for(self, operations, *others)

    first, second = fb.Variable(1.0), fb.Variable(2.0)
    y = chain(first + 1.0)
    monkeypatch.setattr(Initialisation, "prepare_for", counted)
    assert sess.run([y, second]) == [2.0, 2.0]
    assert sess.run([fb.negative(y), second]) == [-2.0, 2.0]
    with fb.control_dependencies([y.op]):
        later = y + second
    assert sess.run([later, second]) == [4.0, 2.0]
    assert asked == [4, 1]  # Nothing new that is touched, nothing to see to.
    # Someone may have lost a value meanwhile.
    sess._master.stores.start_over()
    assert sess.run([fb.square(y), second]) == [4.0, 2.0]
    assert asked[2:] == [4]


def test_an_error_names_the_new_operation(sess: fb.Session, prepared: list[int]) -> None:
    x = fb.placeholder(fb.int32, [])
    y = chain(x)
    assert sess.run(y, {x: 7}) == 7
    picked = fb.gather([1, 2, 3], y, name="picked")
    with pytest.raises(fb.errors.OpError, match="'picked'"):
        sess.run(picked, {x: 7})
    assert sess.run(fb.gather([1, 2, 3], y), {x: 2}) == 3
    assert all(size < 6 for size in prepared[1:])


def values_of(example: Any, signatures: Any, least: int, runs: int = 2, cpus: int = 1) -> list[Any]:
    found: list[Any] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pipeline, "LEAST_TO_GROW", least)
        patched.setattr(segment, "LONGEST", 3)
        patched.setattr(segment, "RUNS_UNWRITTEN", runs)
        scatter(patched, len(signatures))
        with fb.Session(example.graph, cpus=cpus) as sess:
            for fetches, feeds in signatures:
                values = sess.run(fetches, feeds)
                found += map(np.copy, [v for v in values if v is not None])
                spoil(values)
            found += [sess.run(v) for v in example.graph.variables()]
    return found


@settings(max_examples=100)
@given(examples(feed_variables=True), st.integers(0, 2))
def test_values_and_variables_are_the_same(example: Any, runs: int) -> None:
    signatures = []
    with example.graph.as_default():
        for fetches, feeds in example.steps:
            ends = [t for t in fetches if isinstance(t, fb.Tensor)]
            signatures.append((ends, feeds))
            for turn in range(3):
                new = [fb.identity(t) + t for t in ends]
                ends = [*new, *ends] if turn % 2 else new
                signatures.append((ends, feeds))
                kept = fb.Variable(1.0)
                sums = [fb.reduce_sum(fb.cast(t, fb.float32)) for t in new]
                writes = [fb.assign_add(kept, kept * total) for total in sums]
                signatures += [([*ends, *writes], feeds)] * 2
            signatures += [(ends, feeds)] * 2
    found = values_of(example, signatures, 1, runs)
    expected = values_of(example, signatures, 1 << 30)
    assert [v.tobytes() for v in found] == [v.tobytes() for v in expected]


@settings(max_examples=100)
@given(
    examples(with_waiting=True, feed_variables=True),
    st.booleans(),
    st.integers(0, 2),
    st.sampled_from([1, 3]),
)
def test_what_is_asked_for_one_after_the_other(
    example: Any, is_backwards: bool, runs: int, cpus: int
) -> None:
    """Whatever reads and writes come later, and in whatever order they were built."""
    assume(not example.sends)  # Parts of such a step may wait for each other for ever.
    signatures = []
    for fetches, feeds in example.steps:
        ordered = fetches[::-1] if is_backwards else fetches
        for count in range(1, len(ordered) + 1):
            signatures += [(ordered[:count], feeds)] * 2
    found = values_of(example, signatures, 1, runs, cpus)
    expected = values_of(example, signatures, 1 << 30)
    assert [v.tobytes() for v in found] == [v.tobytes() for v in expected]


def test_what_a_program_grew_from_may_go(sess: fb.Session, prepared: list[int]) -> None:
    x = fb.placeholder(fb.float32, [])
    y, _ = delayed(chain(x))
    assert sess.run(y, {x: 1.0}) == 2.0
    (older,) = sess._master._programs.all
    base = weakref.ref(sess._master._programs.kept[older].runner)
    count = len(prepared)
    assert sess.run(fb.negative(y), {x: 1.0}) == -2.0
    assert prepared[count:] == [1]
    sess._master._programs.drop_where(lambda each: each is older)
    gc.collect()
    assert base() is None
