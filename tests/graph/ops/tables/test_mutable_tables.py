"""Look-up tables that runs change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.exec.state.executors import EXECUTORS, run_in
from tests.exec.state.threads import run_together

UNCHECKED: Any = fb.lookup


def test_what_was_put_in_is_there_until_it_is_taken_out() -> None:
    table = fb.lookup.MutableHashTable(fb.string, fb.int64, -1)
    keys, values = fb.placeholder(fb.string), fb.placeholder(fb.int64)
    insert, remove = table.insert(keys, values), table.remove(keys)
    found, size, all_of_it = table.lookup(keys), table.size(), table.export()
    with fb.Session() as sess:
        assert sess.run([found, size], {keys: ["a"]}) == [[-1], 0]
        assert [part.tolist() for part in sess.run(all_of_it)] == [[], []]
        sess.run(insert, {keys: [["a", "b"], ["c", "a"]], values: [[0, 1], [2, 3]]})
        assert sess.run(found, {keys: [["a", "?"]]}).tolist() == [[3, -1]]
        sess.run(insert, {keys: "b", values: 7})
        sess.run(remove, {keys: ["a", "unheard of"]})
        assert [part.tolist() for part in sess.run(all_of_it)] == [[b"b", b"c"], [7, 2]]
        assert sess.run(size) == 2
        with pytest.raises(fb.errors.InvalidArgumentError, match=r"shape \[1\] are none of table"):
            sess.run(insert, {keys: ["x", "y"], values: [1]})
        assert sess.run(size) == 2
        sess.reset()
        assert sess.run(size) == 0
    with fb.Session() as other:
        assert other.run(size) == 0


@pytest.mark.parametrize("dtype", [fb.float32, fb.bool, fb.string, fb.uint8, fb.bfloat16])
def test_values_have_the_shape_of_the_default(dtype: fb.DType) -> None:
    given = np.array([[0, 1], [1, 0]]).astype(bool)
    rows = np.where(given, b"x\0", b"").astype(object) if dtype is fb.string else given
    rows = rows if dtype is fb.string else rows.astype(dtype.numpy)
    table = fb.lookup.MutableHashTable(fb.int64, dtype, rows[0])
    insert = table.insert([4], rows[1:])
    found = table.lookup(np.array([[4], [5]]))
    assert found.shape == fb.Shape([2, 1, 2])
    with fb.Session() as sess:
        sess.run(insert)
        np.testing.assert_array_equal(sess.run(found), rows[[[1], [0]]])
        values = sess.run(table.export()[1])
        assert values.dtype == rows.dtype
        values[:] = rows[0]  # The caller's own.
        np.testing.assert_array_equal(sess.run(found)[0, 0], rows[1])


@pytest.mark.parametrize("kind", EXECUTORS)
def test_within_a_step_a_look_up_sees_what_was_before(kind: str) -> None:
    table = fb.lookup.MutableHashTable(fb.int32, fb.int32, 0)
    x = fb.placeholder(fb.int32, [])
    before = table[x]
    puts = [table.insert(x, 10 * x), table.insert(x, 20 * x)]
    with fb.control_dependencies(puts):
        after = table[x]
    with fb.Session() as sess:
        for step in (1, 2):
            assert run_in(kind, sess, [before, after, *puts], {x: np.int32(step)})[:2] == [
                0,
                20 * step,
            ]
        assert sess.run(before, {x: 1}) == 20


def test_a_loop_changes_a_table() -> None:
    table = fb.lookup.MutableHashTable(fb.int64, fb.int64, 0)

    def body(i: Any) -> Any:
        with fb.control_dependencies([table.insert(i % 3, table[i % 3] + i)]):
            return i + 1

    end = fb.while_loop(lambda i: i < 10, body, [fb.constant(0, fb.int64)])
    with fb.Session() as sess:
        sess.run(end)
        assert sess.run(table[[0, 1, 2]]).tolist() == [18, 12, 15]


def test_no_insertion_of_several_threads_is_lost() -> None:
    table = fb.lookup.MutableHashTable(fb.int64, fb.int64, 0)
    keys = fb.placeholder(fb.int64, [None])
    insert = table.insert(keys, -keys)
    with fb.Session() as sess:
        run_together(
            *(
                lambda first=first: [
                    sess.run(insert, {keys: np.arange(first, first + 1000, 100) + i})
                    for i in range(100)
                ]
                for first in range(0, 4000, 1000)
            )
        )
        found = sess.run(table.export())
    assert sorted(found[0].tolist()) == list(range(4000))
    np.testing.assert_array_equal(found[0], -found[1])


def test_sessions_share_a_table_of_a_named_container() -> None:
    with fb.container("shared tables"):
        table = fb.lookup.MutableHashTable(fb.string, fb.int64, -1, shared_name="t")
        other = fb.lookup.MutableHashTable(fb.string, fb.float32, -1, shared_name="t")
    with fb.Session() as one, fb.Session() as another:
        one.run(table.insert("a", 5))
        assert another.run(table["a"]) == 5
        with pytest.raises(fb.errors.InvalidArgumentError, match="another hash_table"):
            one.run(other.size())
    fb.reset_container("shared tables")


@pytest.mark.parametrize("dtype", [fb.string, fb.float16])
def test_a_checkpoint_has_it(tmp_path: Path, dtype: fb.DType) -> None:
    table = fb.lookup.MutableHashTable(fb.string, dtype, ["", ""] if dtype is fb.string else [0, 0])
    w = fb.Variable(1.0, name="w")
    rows = [["x\0", "ü"], ["", "z"]] if dtype is fb.string else [[1.5, -0.0], [np.inf, 3]]
    insert, found = table.insert(["a", "b\0"], rows), table[["b\0", "c", "a"]]
    with fb.Session() as sess, sess.checkpoint(tmp_path) as checkpoint:
        sess.run([w, insert])
        wanted = sess.run(found)
        checkpoint.save(0)
        sess.run(table.remove(["a", "b\0"]))
    with fb.Session(checkpoint=tmp_path) as sess:
        np.testing.assert_array_equal(sess.run(found), wanted)
        assert sess.run(table.size()) == 2


@pytest.mark.parametrize("has_all", [True, False])
def test_a_saver_of_all_variables_has_it(tmp_path: Path, has_all: bool) -> None:
    table = fb.lookup.MutableHashTable(fb.string, fb.int64, -1)
    w = fb.Variable(1.0, name="w")
    put, found = table.insert("a", 5), table.lookup(["a", "b"])
    saver = fb.train.Saver(None if has_all else [w])
    with fb.Session() as sess:
        sess.run([put, fb.assign(w, 2.0)])
        path = saver.save(sess, tmp_path / "model")
    with fb.Session() as sess:
        sess.run(table.insert("b", 6))
        saver.restore(sess, path)
        assert sess.run(w) == 2
        assert sess.run(found).tolist() == ([5, -1] if has_all else [-1, 6])


def test_a_saver_has_the_tables_that_it_lists(tmp_path: Path) -> None:
    """Under the names that are given, and as they are; the others keep what they have."""
    listed = fb.lookup.MutableHashTable(fb.string, fb.int64, -1, name="listed")
    other = fb.lookup.MutableHashTable(fb.string, fb.int64, -1, name="other")
    empty = fb.lookup.MutableHashTable(fb.int32, fb.float32, [0.0, 0.0], name="empty")
    w = fb.Variable(1.0, name="w")
    key = fb.placeholder(fb.int64, [])
    puts = [listed.insert("a", key), other.insert("a", key)]
    found, more = [listed.lookup("a"), other.lookup("a"), empty.size()], empty.insert(1, [2.0, 3.0])
    saver = fb.train.Saver({"w": w, "words": listed, "none": empty})
    with fb.Session() as sess:
        sess.run([*puts, fb.assign(w, 2.0)], {key: 5})
        path = saver.save(sess, tmp_path / "model")
        sess.run([*puts, more], {key: 6})
        assert saver.restore(sess, path) == ["w", "listed", "empty"]
        assert sess.run(found) == [5, 6, 0]
    with fb.Session() as sess:
        # Of another saver, and in a session that has used none of them.
        assert fb.train.Saver({"words": other}).restore(sess, path) == ["other"]
        assert sess.run(found) == [-1, 5, 0]


def test_a_table_that_a_checkpoint_does_not_have(tmp_path: Path) -> None:
    table = fb.lookup.MutableHashTable(fb.string, fb.int64, -1, name="words")
    w = fb.Variable(1.0, name="w")
    found, put = table.lookup("a"), table.insert("a", 7)
    with fb.Session() as sess:
        path = fb.train.Saver([w, table]).save(sess, tmp_path / "model")
        sess.run(put)
        renamed = fb.train.Saver({"w": w, "word": table})
        with pytest.raises(fb.errors.NotFoundError, match=r"no table 'word'(.|\n)*'words'"):
            renamed.restore(sess, path)
        assert renamed.restore(sess, path, partial=True) == ["w"]
        assert sess.run(found) == 7


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_table_of_another_kind_is_not_restored(tmp_path: Path, is_listed: bool) -> None:
    """As many bytes may be another table's, with all values wrong."""

    def save_or_restore(value_dtype: fb.DType, default: Any) -> None:
        with fb.Graph().as_default(), fb.Session() as sess:
            table = fb.lookup.MutableHashTable(fb.int64, value_dtype, default, name="t")
            w = fb.Variable(1.0, name="w")
            sess.run([table.insert([1], [default]), w])
            saver = fb.train.Saver([w, table] if is_listed else None)
            if fb.train.checkpoint_exists(tmp_path / "model"):
                sess.run(fb.assign(w, 2.0))
                try:
                    saver.restore(sess, tmp_path / "model")
                finally:
                    assert sess.run([w, table.size()]) == [2.0, 1]
            else:
                saver.save(sess, tmp_path / "model")

    save_or_restore(fb.float32, [1.0, 2.0])
    wanted = r"has int64 keys and float32 \[2\] values, and table 't' takes int64 keys and int32"
    with pytest.raises(fb.errors.InvalidArgumentError, match=wanted):
        save_or_restore(fb.int32, [1, 2])
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"float32 \[2, 1\]"):
        save_or_restore(fb.float32, [[1.0], [2.0]])


def test_tables_that_share_contents_are_saved_as_one(tmp_path: Path) -> None:
    tables = [fb.lookup.MutableHashTable(fb.string, fb.int64, -1, shared_name="s") for _ in "ab"]
    saver = fb.train.Saver([tables[1]])
    with fb.Session() as sess:
        sess.run(tables[0].insert("a", 5))
        path = saver.save(sess, tmp_path / "model")
        sess.run(tables[0].insert("a", 6))
        saver.restore(sess, path)
        assert sess.run(tables[0].lookup("a")) == 5


def test_what_tensorflow_saved_has_no_tables() -> None:
    table = fb.lookup.MutableHashTable(fb.string, fb.int64, -1, name="t")
    checkpoint = Path(__file__).parents[3] / "tensorflow/data/references"
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidTypeError, match="the table 't'"):
        fb.tensorflow.restore(sess, checkpoint, [table])  # type: ignore[list-item]


def test_a_table_is_not_for_a_saver_of_another_graph(tmp_path: Path) -> None:
    saver = fb.train.Saver([fb.lookup.MutableHashTable(fb.string, fb.int64, -1)])
    refused = pytest.raises(fb.errors.InvalidArgumentError, match="of another graph")
    with fb.Graph().as_default(), fb.Session() as sess, refused:
        saver.save(sess, tmp_path / "model")


def test_a_stored_graph_has_its_tables() -> None:
    with fb.Graph().as_default() as graph:
        table = fb.lookup.MutableHashTable(fb.string, fb.int64, -1, name="t")
        insert, found = table.insert("a", 5, name="put"), table.lookup("a", name="found")
    other = fb.Graph.from_bytes(graph.to_bytes())
    with fb.Session(other) as sess:
        assert sess.run(found.name) == -1
        sess.run(insert.name)
        assert sess.run(found.name) == 5


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: fb.lookup.MutableHashTable(fb.float32, fb.int64, 0), "not float32"),
        (lambda: fb.lookup.MutableHashTable(fb.string, fb.complex64, 0), "not complex64"),
        (
            lambda: fb.lookup.MutableHashTable(
                fb.string, fb.int64, fb.placeholder(fb.int64, [None])
            ),
            "the shape of the default",
        ),
        (
            lambda: fb.lookup.MutableHashTable(fb.string, fb.int64, 0).insert(["a"], [1, 2]),
            r"values of shape \[2\] do not fit keys of shape \[1\]",
        ),
        (lambda: fb.lookup.MutableHashTable(fb.string, fb.int64, 0).insert("a", 1.5), "float"),
        (lambda: fb.lookup.MutableHashTable(fb.string, fb.int64, 0)[3], "where string"),
        (
            lambda: fb.identity(fb.lookup.MutableHashTable(fb.string, fb.int64, 0)),
            "is no tensor",
        ),
        (lambda: UNCHECKED.MutableHashTable(fb.string, fb.int64, 0).init, "empty from"),
    ],
)
def test_what_does_not_fit_is_refused(build: Any, message: str) -> None:
    with pytest.raises((fb.errors.OpError, AttributeError), match=message):
        build()
