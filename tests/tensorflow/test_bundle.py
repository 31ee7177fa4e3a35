"""V2 checkpoints: those that TensorFlow wrote, and damaged ones."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.files.framing import masked_checksum
from flowbook.tensorflow.bundle import Bundle, _piece_key, _signed
from flowbook.tensorflow.messages_pb2 import BundleEntryProto
from flowbook.tensorflow.table import table
from tests.need import requires

pytestmark = requires(distribution="google-crc32c")

DATA = Path(__file__).parent / "data"


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found, value = found + bytes([value & 0x7F | 0x80]), value >> 7
    return found + bytes([value])


def copied(name: str, folder: Path) -> Path:
    """The files of a checkpoint in another folder."""
    for file in DATA.glob(f"{name}.*"):
        shutil.copy(file, folder)
    return folder / name


def test_what_a_checkpoint_holds() -> None:
    path = DATA / "references"
    found = {name: (dtype, shape) for name, dtype, shape in fb.tensorflow.list_variables(path)}
    assert found["net/w"] == (fb.float32, (4, 6))
    assert found["net/words"] == (fb.string, (2,))
    assert found["global_step"] == (fb.int64, ())
    assert fb.tensorflow.load_variable(path, "global_step") == 3
    assert fb.tensorflow.load_variable(f"{path}.index", "net/words").tolist() == [b"a", b"bc"]
    with pytest.raises(fb.errors.NotFoundError, match=r"(?s)no 'net/u'.*did you mean"):
        fb.tensorflow.load_variable(path, "net/u")
    with pytest.raises(fb.errors.NotFoundError, match="no checkpoint"):
        fb.tensorflow.list_variables(DATA / "nothing")


def test_what_was_saved_in_parts_is_put_together() -> None:
    bundle = Bundle(DATA / "references")
    whole = bundle.read(["net/w"])["net/w"]
    first, second = "net/w 4 6 0,2:0,6", "net/w 4 6 2,2:-"
    parts = bundle.read([first, second])
    assert bundle.entry(first).shape == (2, 6)
    assert np.array_equal(np.concatenate([parts[first], parts[second]]), whole)
    model = fb.tensorflow.load(DATA / "references.meta")
    with fb.Session() as sess:
        model.restore(sess)
        held = sess.run([model.variables["net/w/part_0"], model.variables["net/w/part_1"]])
    assert np.array_equal(np.concatenate(held), whole)
    with pytest.raises(fb.errors.InvalidArgumentError, match="outside"):
        bundle.read(["net/w 4 6 3,2:0,6"])


def test_variables_are_restored_under_other_names_or_not_at_all() -> None:
    path = DATA / "references"
    b, v = fb.Variable(np.ones(6, np.float32)), fb.Variable(np.ones((6, 3), np.float32), name="v")
    other = fb.Variable(np.ones(3, np.float32), name="net/b")
    with fb.Session() as sess:
        assert fb.tensorflow.restore(sess, path, {"net/b": b, "net/v": v}) == [b.op.name, "v"]
        assert np.array_equal(sess.run(v), fb.tensorflow.load_variable(path, "net/v"))
        before = sess.run(b)
        with pytest.raises(fb.errors.InvalidArgumentError, match="net/b"):
            fb.tensorflow.restore(sess, path, {"net/v": v, "net/b": other})
        with pytest.raises(fb.errors.NotFoundError):
            fb.tensorflow.restore(sess, path, [v])
        assert fb.tensorflow.restore(sess, path, [v], partial=True) == []
        assert np.array_equal(sess.run(b), before)


def test_damage_is_told_with_file_and_offset(tmp_path: Path) -> None:
    path = copied("resources", tmp_path)
    data = tmp_path / "resources.data-00000-of-00001"
    content = bytearray(data.read_bytes())
    entry = Bundle(path)._message(b"saved/net/v", BundleEntryProto)
    content[entry.offset + 3] ^= 1
    data.write_bytes(content)
    where = rf"{data.name}.*{entry.offset}|{entry.offset}.*{data.name}"
    with pytest.raises(fb.errors.DataLossError, match=where):
        fb.tensorflow.load_variable(path, "saved/net/v")
    assert fb.tensorflow.load_variable(path, "saved/net/b").shape == (6,)
    data.write_bytes(content[: entry.offset])
    with pytest.raises(fb.errors.DataLossError):
        fb.tensorflow.load_variable(path, "saved/net/v")
    data.unlink()
    with pytest.raises(fb.errors.NotFoundError):
        fb.tensorflow.load_variable(path, "saved/net/v")
    index = tmp_path / "resources.index"
    content = bytearray(index.read_bytes())
    content[content.index(b"global_step")] ^= 1  # What it says is another name.
    index.write_bytes(content)
    with pytest.raises(fb.errors.DataLossError, match=r"resources\.index"):
        fb.tensorflow.list_variables(path)


def with_block(index: bytes, change: Any) -> bytes:
    """An index whose first block has other bytes, and the checksum of these."""
    # Its entries all lie behind one whole key, whose place ends the block.
    size = index.index(b"\0\0\0\0\1\0\0\0", 16) + 8
    block = bytearray(index[:size])
    change(block)
    trailer = b"\0" + masked_checksum(bytes(block) + b"\0").to_bytes(4, "little")
    return bytes(block) + trailer + index[size + 5 :]


@settings(max_examples=80)
@given(st.data())
def test_a_hostile_index_raises_an_error_of_flowbooks(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Its checksums are right, and what it says is not."""
    folder = tmp_path_factory.getbasetemp() / "hostile"
    folder.mkdir(exist_ok=True)
    path = copied("references", folder)
    index = folder / "references.index"

    def change(block: bytearray) -> None:
        for _ in range(data.draw(st.integers(1, 3))):
            block[data.draw(st.integers(0, len(block) - 9))] = data.draw(st.integers(0, 255))

    index.write_bytes(with_block(index.read_bytes(), change))
    with suppress(fb.errors.OpError):
        bundle = Bundle(path)
        for name in bundle.entries:
            with suppress(fb.errors.OpError):
                bundle.read([name])


def rewritten(index: bytes, compressed: Any, method: int) -> bytes:
    """An index of the same entries, in one block that is compressed."""

    def block(entries: dict[bytes, bytes]) -> bytes:
        found = b"".join(
            b"\0" + varint(len(key)) + varint(len(value)) + key + value
            for key, value in entries.items()
        )
        return compressed(found + bytes(4) + (1).to_bytes(4, "little"))

    def place(content: bytes) -> bytes:
        nonlocal written
        start, trailer = len(written), bytes([method])
        checksum = masked_checksum(content + trailer).to_bytes(4, "little")
        written += content + trailer + checksum
        return varint(start) + varint(len(content))

    written, entries = b"", table(index, "")
    data = place(block(entries))
    footer = place(block({})) + place(block({max(entries): data}))
    return written + footer.ljust(40, b"\0") + index[-8:]


@requires(module="pyarrow")
def test_an_index_may_be_compressed_by_snappy(tmp_path: Path) -> None:
    import pyarrow

    def compressed(block: bytes) -> bytes:
        found: bytes = pyarrow.compress(block, codec="snappy", asbytes=True)
        return found

    path = copied("resources", tmp_path)
    index = tmp_path / "resources.index"
    content, wanted = index.read_bytes(), fb.tensorflow.list_variables(path)
    index.write_bytes(rewritten(content, compressed, 1))
    assert fb.tensorflow.list_variables(path) == wanted
    for damage in (
        lambda block: compressed(block)[:-1],
        lambda block: b"\xff\xff\xff\xff\x0f" + compressed(block)[1:],
        lambda block: compressed(block)[:5] + b"\xfe\xff\xff" + compressed(block)[8:],
    ):
        index.write_bytes(rewritten(content, damage, 1))
        with pytest.raises(fb.errors.DataLossError, match=r"resources\.index.* at byte"):
            fb.tensorflow.list_variables(path)
    index.write_bytes(rewritten(content, lambda block: block, 2))
    with pytest.raises(fb.errors.UnimplementedError, match="method 2, and not by snappy"):
        fb.tensorflow.list_variables(path)


@requires(module="pyarrow")
def test_without_pyarrow_it_is_said_what_to_install(tmp_path: Path, monkeypatch: Any) -> None:
    import pyarrow

    path = copied("resources", tmp_path)
    index = tmp_path / "resources.index"
    by_snappy = rewritten(
        index.read_bytes(), lambda b: pyarrow.compress(b, "snappy", asbytes=True), 1
    )
    index.write_bytes(by_snappy)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(fb.errors.UnimplementedError, match="pip install pyarrow"):
        fb.tensorflow.list_variables(path)


@given(st.lists(st.integers(-(1 << 62), 1 << 62), min_size=2, max_size=20))
def test_keys_of_pieces_sort_as_their_numbers_do(values: list[int]) -> None:
    assert sorted(values) == sorted(values, key=_signed)
    keys = [_piece_key("name", [(v, 1)]) for v in values]
    assert sorted(keys) == [_piece_key("name", [(v, 1)]) for v in sorted(values)]


def test_pieces_that_are_nowhere_take_no_memory() -> None:
    """An index may say that a piece of the largest shape is there."""
    bundle = Bundle(DATA / "references")
    piece = BundleEntryProto(dtype=1)
    for _ in range(2):
        piece.shape.dim.add(size=1 << 20)
    whole = BundleEntryProto()
    whole.CopyFrom(piece)
    extents = whole.slices.add().extent
    extents.add()
    extents.add()
    bundle._messages[b"large"] = whole.SerializeToString()
    bundle._messages[_piece_key("large", [(0, -1), (0, -1)])] = piece.SerializeToString()
    bundle.entries["large"] = bundle._stored(whole, "large")
    with pytest.raises(fb.errors.DataLossError, match="does not hold all"):
        bundle.read(["large"])
