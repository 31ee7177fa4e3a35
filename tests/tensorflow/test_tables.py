"""Look-up tables of TensorFlow's graphs: `tests/record_tensorflow_files.py` recorded a model."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import flowbook as fb
from flowbook.tensorflow.elements import to_tensor
from flowbook.tensorflow.messages_pb2 import DataType, GraphDef
from tests.need import requires

DATA = Path(__file__).parent / "data"


@requires(distribution="google-crc32c")
def test_a_saved_models_tables_are_filled_by_what_lies_beside_it(tmp_path: Path) -> None:
    with np.load(DATA / "vocabulary.npz") as file:
        recorded = dict(file)
    model = fb.tensorflow.load(DATA / "vocabulary")
    assert list(model.inputs) == ["serving_default_x"]
    signature = model.signatures["serving_default"]
    with fb.Session() as sess:
        assert model.restore(sess) == ["w"]
        found = sess.run(signature.outputs, {signature.inputs["x"]: recorded["words"]})
    np.testing.assert_allclose(found["rows"], recorded["rows"])
    assert found["names"].astype(str).tolist() == recorded["names"].tolist()
    assert found["size"] == recorded["size"]
    shutil.copytree(DATA / "vocabulary", tmp_path / "model")
    words = tmp_path / "model" / "assets" / "words.txt"
    words.write_bytes(b"the\nthe\n")
    with pytest.raises(fb.errors.InvalidArgumentError, match="two values for one key"):
        fb.tensorflow.load(tmp_path / "model", name="other")
    words.unlink()
    with pytest.raises(fb.errors.NotFoundError, match=r"words\.txt"):
        fb.tensorflow.load(tmp_path / "model", name="other")


@requires(distribution="google-crc32c")
def test_a_table_that_a_checkpoint_fills_is_read_from_it(tmp_path: Path) -> None:
    signature = fb.tensorflow.load(DATA / "adapted").signatures["serving_default"]
    with fb.Session() as sess:
        found = sess.run(signature.outputs, {signature.inputs["x"]: ["be", "or", "to"]})
    assert found["ids"].tolist() == [4, -1, 3]
    shutil.copy(DATA / "adapted" / "saved_model.pb", tmp_path)
    with pytest.raises(fb.errors.UnimplementedError, match="known to a run alone"):
        fb.tensorflow.load(tmp_path, name="other")


def table(*lines: str, op: str = "HashTableV2") -> GraphDef:
    """A look-up of strings, with these nodes beside it."""
    message = GraphDef()
    end = "y LookupTableFindV2 table x none"
    for line in ("x Placeholder", f"table {op}", "none Const", *lines, end):
        name, op, *inputs = line.split()
        node = message.node.add(name=name, op=op, input=inputs)
        if op == "Const":
            node.attr["value"].tensor.CopyFrom(to_tensor(np.array(b"?", object)))
        elif op == "Placeholder":
            node.attr["dtype"].type = DataType.DT_STRING
    return message


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "nothing fills it: what initialises tables was not kept"),
        (
            ["fill InitializeTableV2 table none none", "more LookupTableImportV2 table none none"],
            "2",
        ),
        (["keys Identity x", "fill InitializeTableV2 table keys none"], "known to a run alone"),
    ],
)
def test_a_table_is_filled_once_by_what_is_known(lines: list[str], why: str) -> None:
    with pytest.raises(fb.errors.UnimplementedError, match=why):
        fb.tensorflow.load(table(*lines))


def test_a_table_of_one_key() -> None:
    model = fb.tensorflow.load(table("fill InitializeTableV2 table none none"))
    with fb.Session() as sess:
        found = sess.run([model["y:0"], model["fill"]], {model["x:0"]: ["?", "other"]})
    assert found[0].tolist() == [b"?", b"?"]


def test_a_table_that_might_change_holds_the_constants_that_are_put_in() -> None:
    fill = "fill LookupTableInsertV2 table none none"
    model = fb.tensorflow.load(table(fill, op="MutableHashTableV2"))
    with fb.Session() as sess:
        assert sess.run(model["y:0"], {model["x:0"]: ["?"]}).tolist() == [b"?"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("more LookupTableInsertV2 table x none", "2 nodes fill it"),
        ("gone LookupTableRemoveV2 table x", "LookupTableRemoveV2"),
    ],
)
def test_a_table_that_changes_in_runs_is_refused(change: str, why: str) -> None:
    fill = "fill LookupTableInsertV2 table none none"
    with pytest.raises(fb.errors.UnimplementedError, match=why):
        fb.tensorflow.load(table(fill, change, op="MutableHashTableV2"))
