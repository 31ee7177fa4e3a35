"""Look-up tables that never change; numbers of buckets are TensorFlow's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.interpreter import evaluate

UNCHECKED: Any = fb.lookup
Keyed = fb.lookup.KeyValueTensorInitializer


def numbered(*words: Any) -> Keyed:
    return Keyed(list(words), np.arange(len(words)))


def test_a_key_has_its_value_wherever_it_is_asked_for() -> None:
    table = fb.lookup.StaticHashTable(numbered("b", "", "a"), -1)
    keys = fb.placeholder(fb.string)
    with fb.Session() as sess:
        for given, wanted in (
            ([["a"], ["?"]], [[2], [-1]]),
            ("b", 0),
            ("b\0", -1),
            (np.array([], object), []),
            (["", "b", ""], [1, 0, 1]),
        ):
            assert sess.run(table.lookup(keys), {keys: given}).tolist() == wanted
        assert sess.run(table.size()) == 3
    assert table.lookup(["a", "b"]).shape == fb.Shape([2])
    assert (table.key_dtype, table.value_dtype) == (fb.string, fb.int64)
    assert evaluate(table["a"]) == 2


def test_values_may_be_of_any_dtype_and_defaults_computed() -> None:
    words = Keyed(np.array([-3, 5]), ["minus three", "five"])
    assert evaluate(fb.lookup.StaticHashTable(words, "?")[[5, 0]]).tolist() == [b"five", b"?"]
    default = fb.placeholder(fb.float32, [])
    table = fb.lookup.StaticHashTable(Keyed(["x"], [np.inf]), default)
    with fb.Session() as sess:
        assert sess.run(table[["y", "x"]], {default: 2.5}).tolist() == [2.5, np.inf]


def test_sparse_keys_give_sparse_values() -> None:
    table = fb.lookup.StaticHashTable(numbered("a", "b"), -1)
    words = fb.SparseTensor([[0, 1], [2, 0]], ["b", "x"], [3, 2])
    with fb.Session() as sess:
        found = sess.run(table.lookup(words))
    assert found.indices.tolist() == [[0, 1], [2, 0]]
    assert found.values.tolist() == [1, -1]
    assert found.dense_shape.tolist() == [3, 2]


def test_an_empty_table_has_defaults_alone() -> None:
    table = fb.lookup.StaticHashTable(Keyed([], [], fb.string, fb.int64), 7)
    assert evaluate(table[["a", "b"]]).tolist() == [7, 7]
    assert evaluate(table.size()) == 0


def test_a_key_may_be_there_twice_with_one_value() -> None:
    table = fb.lookup.StaticHashTable(Keyed(["a", "b", "a"], [1, 2, 1]), 0)
    assert evaluate(table.size()) == 2
    with pytest.raises(fb.errors.InvalidArgumentError, match="two values for one key: b'a'"):
        fb.lookup.StaticHashTable(Keyed(["a", "b", "a"], [1, 2, 3]), 0)


def test_words_outside_of_a_vocabulary_have_the_buckets_that_tensorflow_gives_them() -> None:
    table = fb.lookup.StaticVocabularyTable(numbered("a", "b"), 100)
    assert evaluate(table[["b", "zebra", "", "é"]]).tolist() == [1, 64, 65, 27]
    assert evaluate(table.size()) == 102
    ints = fb.lookup.StaticVocabularyTable(numbered(42, 7), 100, lookup_key_dtype=fb.int32)
    keys = fb.constant([7, -1, 1000])
    assert evaluate(ints.lookup(keys)).tolist() == [1, 32, 95]
    alone = fb.lookup.StaticVocabularyTable(None, 100)
    assert evaluate(alone[["b", "zebra"]]).tolist()[1] == 62


def test_files_are_read_when_a_table_is_built(tmp_path: Path) -> None:
    words, rows = tmp_path / "words.txt", tmp_path / "rows.txt"
    words.write_bytes(b"one\r\ntwo\r\n\r\nlast")
    rows.write_text("x,1,0.5\ny,2,1e3\n")
    table = fb.lookup.index_table_from_file(words)
    back = fb.lookup.index_to_string_table_from_file(words, vocab_size=2)
    words.unlink()
    assert evaluate(table[["last", "", "two", "two\r"]]).tolist() == [3, 2, 1, -1]
    assert evaluate(back[[1, 2]]).tolist() == [b"two", b"UNK"]
    index = fb.lookup.TextFileIndex
    columns = fb.lookup.TextFileInitializer(rows, fb.string, 0, fb.float32, 2, delimiter=",")
    assert evaluate(fb.lookup.StaticHashTable(columns, 0.0)[["y", "x"]]).tolist() == [1e3, 0.5]
    numbers = fb.lookup.TextFileInitializer(
        rows, fb.string, index.WHOLE_LINE, fb.int64, index.LINE_NUMBER, value_index_offset=5
    )
    assert evaluate(fb.lookup.StaticHashTable(numbers, 0)[["y,2,1e3", "y"]]).tolist() == [6, 0]


def test_vocabularies_of_tensors_go_both_ways() -> None:
    table = fb.lookup.index_table_from_tensor(["a", "b"], num_oov_buckets=100)
    assert evaluate(table[["b", "zebra"]]).tolist() == [1, 64]
    plain = fb.lookup.index_table_from_tensor(fb.constant([30, 10]), default_value=-7)
    assert evaluate(plain.lookup(fb.constant([10, 11]))).tolist() == [1, -7]
    back = fb.lookup.index_to_string_table_from_tensor(["a", "b"], default_value="?")
    assert evaluate(back[[1, 2, -1]]).tolist() == [b"b", b"?", b"?"]


def test_a_table_is_stored_with_its_graph() -> None:
    with fb.Graph().as_default() as graph:
        keys = fb.placeholder(fb.string, [None], name="keys")
        found = fb.lookup.StaticVocabularyTable(numbered("a", "b"), 100).lookup(keys)
    other = fb.Graph.from_bytes(graph.to_bytes())
    with fb.Session(other) as sess:
        assert sess.run(found.name, {"keys:0": ["zebra", "a"]}).tolist() == [64, 0]


def test_a_look_up_stands_in_loops_and_in_the_graph_of_its_table() -> None:
    with fb.Graph().as_default() as graph:
        table = fb.lookup.StaticHashTable(numbered("a", "b"), -1)
    assert table["a"].graph is graph
    with graph.as_default(), fb.Session() as sess:
        words = fb.map_fn(lambda word: table[word], fb.constant(["b", "?"]), dtype=fb.int64)
        assert sess.run(words).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Keyed(["a"], [1, 2]), "2 values do not fit 1 key"),
        (lambda: Keyed([1.5], [1]), "integers or strings, not float32"),
        (lambda: Keyed(fb.placeholder(fb.string, [1]), [1]), "MutableHashTable"),
        (lambda: UNCHECKED.StaticHashTable(3, 0), "KeyValueTensorInitializer"),
        (lambda: fb.lookup.StaticHashTable(numbered("a"), "x"), "string where int64"),
        (lambda: fb.lookup.StaticHashTable(numbered("a"), [1]), "a default is a scalar"),
        (lambda: fb.lookup.StaticHashTable(numbered("a"), 0)[fb.constant(1)], "string is wanted"),
        (lambda: UNCHECKED.StaticHashTable(numbered("a"), 0).init, "full from"),
        (
            lambda: fb.lookup.StaticVocabularyTable(numbered("a"), 0),
            "_buckets is at least 1",
        ),
        (lambda: fb.lookup.StaticVocabularyTable(Keyed(["a"], [0]), 1), "int64, not int32"),
        (
            lambda: fb.lookup.StaticVocabularyTable(numbered("a"), 1, fb.int64),
            "int64 are not looked up in a vocabulary of string",
        ),
        (lambda: fb.lookup.index_table_from_tensor([], dtype=fb.string), "at least one word"),
        (lambda: fb.lookup.index_table_from_tensor(["a"], -1), "not negative: -1"),
        (lambda: fb.lookup.index_table_from_file("none.txt"), "none.txt"),
        (lambda: fb.lookup.index_table_from_file(__file__, delimiter="  "), "one character"),
        (
            lambda: fb.lookup.index_table_from_file(__file__, vocab_size=0),
            "size is at least 1",
        ),
        (lambda: fb.lookup.index_table_from_file(__file__, key_dtype=fb.int64), "no column -2"),
        (lambda: fb.lookup.index_table_from_file(__file__, vocab_size=9999), "and not 9999"),
        (
            lambda: fb.lookup.TextFileInitializer(__file__, fb.string, -1, fb.int64, -1),
            "the number of a line is no string",
        ),
    ],
)
def test_what_is_no_table_is_refused(build: Any, message: str) -> None:
    with pytest.raises((fb.errors.OpError, AttributeError), match=message):
        build()
