"""Files as operations: read, written and found where they run, in the order of construction."""

from __future__ import annotations

from pathlib import Path

import pytest

import flowbook as fb


def test_files_are_written_and_read_in_the_order_of_construction(tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "b" / "file")
    before = fb.write_file(path, b"one\0")
    first = fb.read_file(path)
    again = fb.write_file(path, "two")
    second = fb.read_file(path)
    with fb.Session() as sess:
        for _ in range(3):
            assert sess.run([second, again, first, before])[::2] == [b"two", b"one\0"]
    assert [each.name for each in (tmp_path / "a" / "b").iterdir()] == ["file"]


def test_names_of_files_are_found_in_each_run(tmp_path: Path) -> None:
    text = fb.placeholder(fb.string, [])
    names = fb.matching_files([f"{tmp_path}/*.txt", f"{tmp_path}/a*"])
    put = fb.write_file(text, "")
    assert names.shape.as_list() == [None]
    with fb.Session() as sess:
        assert sess.run(names).tolist() == []
        for name in ("b.txt", "a.txt", "a.csv"):
            sess.run(put, {text: f"{tmp_path}/{name}"})
        found = [f"{tmp_path}/{name}".encode() for name in ("a.csv", "a.txt", "b.txt")]
        assert sess.run(names).tolist() == found


def test_files_are_the_initial_values_of_variables(tmp_path: Path) -> None:
    (tmp_path / "numbers").write_bytes(bytes([1, 2]))
    read = fb.decode_raw(fb.read_file(str(tmp_path / "numbers")), fb.uint8)
    v = fb.Variable(fb.reshape(read, [2]))
    with fb.Session() as sess:
        assert sess.run(v).tolist() == [1, 2]
        (tmp_path / "numbers").unlink()
        assert sess.run(v).tolist() == [1, 2]


def test_what_goes_wrong_names_the_file(tmp_path: Path) -> None:
    folder = str(tmp_path)
    with fb.Session() as sess:
        with pytest.raises(fb.errors.NotFoundError, match=r"no file '.*missing'"):
            sess.run(fb.read_file(f"{folder}/missing"))
        with pytest.raises(fb.errors.FailedPreconditionError, match="cannot be read"):
            sess.run(fb.read_file(folder))
        with pytest.raises(fb.errors.InvalidArgumentError, match="no regular file"):
            sess.run(fb.write_file(folder, "text"))
        (tmp_path / "file").touch()
        for path in (f"{folder}/file/name", f"{folder}/file/folder/name"):
            with pytest.raises(fb.errors.FailedPreconditionError, match="cannot be written"):
                sess.run(fb.write_file(path, "text"))
        with pytest.raises(fb.errors.InvalidArgumentError, match="the name of a file"):
            sess.run(fb.write_file("", "text"))
    with pytest.raises(fb.errors.InvalidArgumentError, match="string scalar"):
        fb.read_file(["a", "b"])
    with pytest.raises(fb.errors.InvalidArgumentError, match="string scalar"):
        fb.write_file("a", ["b"])
    with pytest.raises(fb.errors.InvalidArgumentError, match="pattern"):
        fb.matching_files([["a"]])


def test_a_url_without_a_folder_is_no_local_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with fb.Session() as sess:
        sess.run(fb.write_file("memory://at-the-top", "text"))
        assert sess.run(fb.read_file("memory://at-the-top")) == b"text"
    assert not [*tmp_path.iterdir()]
