"""Readers: whose records come, who waits for names, and what becomes of those that go away."""

from __future__ import annotations

import base64
import itertools
import json
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.resources.reader import Reader
from tests.exec.state.executors import EXECUTORS, run_in
from tests.graph.ops.queues.waiting import begun, begun_at, given_up, waiters
from tests.interrupts import interrupted_at


@pytest.fixture
def sess() -> Iterator[fb.Session]:
    with fb.Session() as session:
        yield session


def files(folder: Path, **contents: str) -> list[str]:
    """Files of these contents; their names in the order in which they are given."""
    for name, content in contents.items():
        (folder / name).write_text(content)
    return [str(folder / name) for name in contents]


def in_memory(**contents: str) -> list[str]:
    """As `files`, where an interrupt while one is opened leaves nothing to Python to be closed."""
    system = fsspec.filesystem("memory")
    for name, content in contents.items():
        system.pipe(f"/test_readers/{name}", content.encode())
    return [f"memory://test_readers/{name}" for name in contents]


def producer(names: list[str], num_epochs: int | None = 1) -> fb.FIFOQueue:
    return fb.train.string_input_producer(names, num_epochs=num_epochs, shuffle=False)


def held(sess: fb.Session, reader: fb.Reader) -> Any:
    return sess._master.stores.find(reader.op.key)


# One after the other


@pytest.mark.parametrize("kind", EXECUTORS)
def test_records_come_file_by_file(sess: fb.Session, tmp_path: Path, kind: str) -> None:
    names = files(tmp_path, a="1\n2\n", empty="", b="3")
    reader = fb.TextLineReader()
    key, value = reader.read(producer(names))
    assert (key.shape, value.shape) == (fb.Shape([]), fb.Shape([]))
    counts = [reader.num_records_produced(), reader.num_work_units_completed()]
    found = [run_in(kind, sess, [key, value]) for _ in range(3)]
    assert found == [
        [f"{names[0]}:1".encode(), b"1"],
        [f"{names[0]}:2".encode(), b"2"],
        [f"{names[2]}:1".encode(), b"3"],
    ]
    assert run_in(kind, sess, counts) == [3, 2]
    with pytest.raises(fb.errors.OutOfRangeError):
        run_in(kind, sess, value)
    assert run_in(kind, sess, counts) == [3, 3]


def test_whole_files_and_names(sess: fb.Session, tmp_path: Path) -> None:
    names = files(tmp_path, a="one\n", b="")
    whole, itself = fb.WholeFileReader(), fb.IdentityReader()
    contents = fb.train.until_end(sess, whole.read(producer(names)))
    assert list(contents) == [(names[0].encode(), b"one\n"), (names[1].encode(), b"")]
    missing = producer(["no such file", "nor this"])
    given = list(fb.train.until_end(sess, itself.read(missing)))
    assert given == [(b"no such file", b"no such file"), (b"nor this", b"nor this")]


def test_records_of_one_length(sess: fb.Session, tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(b"head" + np.arange(6, dtype=np.int16).tobytes() + b"x")
    reader = fb.FixedLengthRecordReader(4, header_bytes=4, footer_bytes=1)
    pair = fb.decode_raw(reader.read(producer([str(path)]))[1], fb.int16)
    assert [row.tolist() for row in fb.train.until_end(sess, pair)] == [[0, 1], [2, 3], [4, 5]]
    overlapping = fb.FixedLengthRecordReader(4, 4, 1, hop_bytes=2)
    keys = [k for k, _ in fb.train.until_end(sess, overlapping.read(producer([str(path)])))]
    assert keys == [f"{path}:{n}".encode() for n in range(5)]


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_records_that_were_written(
    sess: fb.Session, tmp_path: Path, compression: str | None
) -> None:
    path = str(tmp_path / "records")
    with fb.train.RecordWriter(path, compression) as writer:
        for word in (b"one", b"two", b"three"):
            writer.write(word)
            writer.flush()
    assert list(fb.train.read_records(path, compression)) == [b"one", b"two", b"three"]
    value = fb.TFRecordReader(compression).read(producer([path]))[1]
    assert list(fb.train.until_end(sess, value)) == [b"one", b"two", b"three"]


def test_several_records_at_once_lie_in_several_files(sess: fb.Session, tmp_path: Path) -> None:
    names = files(tmp_path, a="1\n2\n", b="3\n", c="4\n5\n")
    reader = fb.TextLineReader()
    keys, values = reader.read_up_to(producer(names), 3)
    assert (keys.shape.as_list(), values.shape.as_list()) == ([None], [None])
    assert sess.run(values).tolist() == [b"1", b"2", b"3"]
    assert sess.run(keys).tolist() == [f"{names[2]}:{n}".encode() for n in (1, 2)]
    with pytest.raises(fb.errors.OutOfRangeError):
        sess.run(values)
    count = fb.placeholder(fb.int64, [])
    with pytest.raises(fb.errors.InvalidArgumentError, match="at least 1"):
        sess.run(reader.read_up_to(producer(names), count), {count: 0})


def test_two_readers_share_the_files_of_a_queue(sess: fb.Session, tmp_path: Path) -> None:
    names = producer(files(tmp_path, a="1\n2\n", b="3\n4\n", c="5\n"))
    one, two = (fb.TextLineReader().read(names)[1] for _ in range(2))
    assert [sess.run(t) for t in (one, two, one, two, one)] == [b"1", b"3", b"2", b"4", b"5"]


def test_a_thousand_empty_files(sess: fb.Session, tmp_path: Path) -> None:
    (empty,) = files(tmp_path, empty="")
    (full,) = files(tmp_path, full="line")
    value = fb.TextLineReader().read(producer([empty] * 2000 + [full]))[1]
    assert sess.run(value) == b"line"


# Errors


def test_a_file_that_is_missing_is_not_passed_over(sess: fb.Session, tmp_path: Path) -> None:
    (there,) = files(tmp_path, there="line")
    reader = fb.TextLineReader()
    value = reader.read(producer([str(tmp_path / "missing"), there]))[1]
    for _ in range(2):
        with pytest.raises(fb.errors.NotFoundError, match=r"ReaderRead .*missing") as caught:
            sess.run(value)
    assert "test_readers.py" in str(caught.value)
    sess.run(reader.reset())
    assert sess.run(value) == b"line"


def test_a_damaged_record_is_named_or_left_out(sess: fb.Session, tmp_path: Path) -> None:
    path = tmp_path / "records"
    with fb.train.RecordWriter(path) as writer:
        for word in (b"one", b"two", b"three"):
            writer.write(word)
    content = bytearray(path.read_bytes())
    content[19 + 12] ^= 1
    path.write_bytes(content)
    value = fb.TFRecordReader().read(producer([str(path)]))[1]
    assert sess.run(value) == b"one"
    with pytest.raises(fb.errors.DataLossError, match=rf"{path}: the record at byte 19 "):
        sess.run(value)
    value = fb.TFRecordReader(skip_damaged=True).read(producer([str(path)]))[1]
    assert list(fb.train.until_end(sess, value)) == [b"one", b"three"]
    value = fb.FixedLengthRecordReader(40).read(producer([str(path)]))[1]
    sess.run(value)
    with pytest.raises(fb.errors.DataLossError, match=rf"{path}: the record at byte 40 "):
        sess.run(value)
    reader = fb.FixedLengthRecordReader(40, skip_damaged=True)
    assert len([*fb.train.until_end(sess, reader.read(producer([str(path)])))]) == 1


def test_what_failed_among_several_records_loses_none(sess: fb.Session, tmp_path: Path) -> None:
    (there,) = files(tmp_path, there="1\n2\n")
    reader = fb.TextLineReader()
    names = producer([there, str(tmp_path / "missing")])
    with pytest.raises(fb.errors.NotFoundError):
        sess.run(reader.read_up_to(names, 3))
    assert sess.run(reader.num_records_produced()) == 0
    assert sess.run(reader.read_up_to(names, 2)[1]).tolist() == [b"1", b"2"]


def test_wrong_arguments_are_refused(sess: fb.Session) -> None:
    reader, wrong = fb.IdentityReader(), fb.errors.InvalidArgumentError
    with pytest.raises(wrong, match=r"string scalars, and 'FIFOQueue' has int32 \[\]"):
        reader.read(fb.FIFOQueue(1, fb.int32, shapes=[[]]))
    with pytest.raises(wrong, match="string scalars"):
        reader.read_up_to(fb.FIFOQueue(1, fb.string, shapes=[[2]]), 2)
    with pytest.raises(fb.errors.InvalidTypeError, match="from a queue"):
        reader.read(["a"])  # type: ignore[arg-type]
    with pytest.raises(fb.errors.InvalidTypeError, match="no tensor"):
        fb.identity(reader)
    with pytest.raises(wrong, match="record_bytes"):
        fb.FixedLengthRecordReader(0)
    with pytest.raises(wrong, match="hop_bytes"):
        fb.FixedLengthRecordReader(1, hop_bytes=-1)
    with pytest.raises(wrong, match="compression"):
        fb.TFRecordReader("zip")
    with pytest.raises(wrong, match="skip_header_lines"):
        fb.TextLineReader(1.5)  # type: ignore[arg-type]
    with pytest.raises(wrong, match="string scalar"):
        reader.restore_state(["a", "b"])
    unknown = fb.FIFOQueue(1, fb.string)
    sess.run(unknown.enqueue(["a", "b"]))
    with pytest.raises(wrong):
        sess.run(reader.read(unknown))


# Waiting


def test_a_read_waits_for_a_name(sess: fb.Session, tmp_path: Path) -> None:
    (path,) = files(tmp_path, a="1\n2\n")
    names, reader = fb.FIFOQueue(2, fb.string, shapes=[[]]), fb.TextLineReader()
    value = reader.read(names)[1]
    sess.run(names.size())
    first = begun(sess, names, value)
    second = begun(sess, reader, value)
    sess.run(names.enqueue(path))
    assert {first.result(), second.result()} == {b"1", b"2"}
    waiting = begun(sess, names, value)
    sess.run(names.close())
    with pytest.raises(fb.errors.OutOfRangeError, match="closed"):
        waiting.result()


def test_what_waits_says_for_what(sess: fb.Session) -> None:
    names, reader = fb.FIFOQueue(2, fb.string, shapes=[[]], name="names"), fb.IdentityReader()
    error = given_up(sess, reader.read(names), "name of a file for 'Identity")
    assert "'names', which has 0 of 2 elements" in str(error)
    assert waiters(sess, names) == waiters(sess, reader) == 0


def test_who_goes_away_takes_no_name_with_it(sess: fb.Session) -> None:
    names, reader = fb.FIFOQueue(2, fb.string, shapes=[[]]), fb.IdentityReader()
    value = reader.read(names)[1]
    for _ in range(2):
        with pytest.raises(fb.errors.DeadlineExceededError):
            sess.run(value, timeout=0.01)
    waiting = begun(sess, names, value)
    sess.run(names.enqueue("a"))
    assert waiting.result() == b"a"


def test_the_next_in_line_asks_for_itself(sess: fb.Session) -> None:
    one, two = (fb.FIFOQueue(2, fb.string, shapes=[[]]) for _ in range(2))
    reader = fb.IdentityReader()
    sess.run([one.size(), two.size()])
    first = begun(sess, one, reader.read(one)[1], timeout=0.2)
    # On a busy machine the first may have given up by now, so that the second is the first in line.
    second = begun_at(sess, [reader, two], reader.read(two)[1])
    with pytest.raises(fb.errors.DeadlineExceededError):
        first.result()
    sess.run(two.enqueue("b"))
    assert second.result() == b"b"


def test_closing_the_session_ends_waits_and_closes_files(tmp_path: Path) -> None:
    (path,) = files(tmp_path, a="1\n2\n")
    names, reader = fb.FIFOQueue(2, fb.string, shapes=[[]]), fb.TextLineReader()
    with fb.Session() as sess:
        sess.run(names.enqueue(path))
        sess.run(reader.read(names))
        resource = held(sess, reader)
        assert resource._records is not None
        waiting = begun(sess, names, fb.IdentityReader().read(names))
    with pytest.raises(fb.errors.CancelledError):
        waiting.result()
    assert resource._records is None


def test_a_reader_that_was_redefined_closes_its_file(tmp_path: Path) -> None:
    (path,) = files(tmp_path, a="1\n2\n")
    with fb.Session() as sess:
        names = producer([path])
        reader = fb.TextLineReader()
        sess.run(reader.read(names))
        resource = held(sess, reader)
        with resource._lock:
            resource.let_go()  # As a garbage collection may ask while somebody reads.
        assert resource._records is not None
        sess.run(reader.read(names))
        assert resource._records is None


# Interrupts


def test_an_interrupt_loses_no_record_and_doubles_none() -> None:
    lines = [str(n) for n in range(400)]
    names = fb.FIFOQueue(-1, fb.string, shapes=[[]])
    reader = fb.TextLineReader()
    values = reader.read_up_to(names, 2)[1]
    with fb.Session() as sess:
        chunks = {f"f{n}": "\n".join(lines[n : n + 3]) for n in range(0, len(lines), 3)}
        sess.run(names.enqueue_many(in_memory(**chunks)))
        sess.run(names.close())
        found: list[str] = []
        records = reader.num_records_produced()
        for _ in range(3):
            found += [value.decode() for value in sess.run(values)]
            sess.run(records)
        for number in itertools.count(1):
            given: list[Any] = []
            stopped = interrupted_at(number, lambda to=given: to.append(sess.run(values)))
            produced = int(sess.run(records))
            found += [value.decode() for value in given[0]] if given else []
            # What the step had when it was stopped is given back, or was the step's already.
            found += lines[len(found) : produced]
            if stopped is None:
                break
        assert number > 30
        while True:
            try:
                found += [value.decode() for value in sess.run(values)]
            except fb.errors.OutOfRangeError:
                break
    assert found == lines


def test_an_interrupt_of_who_brings_a_name_does_not_forget_who_waits() -> None:
    (path,) = in_memory(a="line")
    names, reader = fb.FIFOQueue(4, fb.string, shapes=[[]]), fb.TextLineReader()
    put, value, size = names.enqueue(path), reader.read(names)[1], names.size()
    rest = names.dequeue()
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(put)
            sess.run(value)
        for number in itertools.count(1):
            waiting = begun(sess, names, value)
            stopped = interrupted_at(number, lambda: sess.run(put))
            if int(sess.run(size)) == 0 and waiters(sess, names):
                sess.run(put)  # It came before the name did.
            assert waiting.result() == b"line", number
            while int(sess.run(size)):
                sess.run(rest)
            if stopped is None:
                break


class Interrupted(list[Any]):
    """Is interrupted when something has been added, where no call of Flowbook's own is."""

    def extend(self, elements: Iterable[Any]) -> None:
        super().extend(elements)
        raise KeyboardInterrupt


def test_an_interrupt_where_a_record_is_handed_over(sess: fb.Session) -> None:
    reader = fb.TextLineReader()
    value = reader.read(producer(in_memory(a="1\n2\n3\n")))[1]
    assert sess.run(value) == b"1"
    resource, target = held(sess, reader), Interrupted()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            resource.take(SimpleNamespace(taken=target), 2)
        assert not target
    assert sess.run(value) == b"2"


def test_what_is_before_damage_is_read_before_its_error(sess: fb.Session, tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_bytes(b"0011223")
    reader, names = fb.FixedLengthRecordReader(2), producer([str(path)])
    some, one = reader.read_up_to(names, 10)[1], reader.read(names)[1]
    with pytest.raises(fb.errors.DataLossError):
        sess.run(some)
    assert [sess.run(one) for _ in range(3)] == [b"00", b"11", b"22"]
    with pytest.raises(fb.errors.DataLossError):
        sess.run(one)


# State


def state_of(sess: fb.Session, reader: fb.Reader) -> Any:
    return sess.run(reader.serialize_state())


def test_a_state_is_where_to_go_on(sess: fb.Session, tmp_path: Path) -> None:
    names = files(tmp_path, a="1\n2\n3\n", b="4\n5\n")
    reader, other = fb.TextLineReader(), fb.TextLineReader()
    queue = producer(names)
    value, state = reader.read(queue)[1], fb.placeholder(fb.string, [])
    assert reader.supports_serialize
    sess.run([value])
    saved = state_of(sess, reader)
    assert [sess.run(value) for _ in range(2)] == [b"2", b"3"]
    sess.run(reader.restore_state(state), {state: saved})
    assert state_of(sess, reader) == saved
    assert sess.run(reader.num_records_produced()) == 1
    assert [*fb.train.until_end(sess, value)] == [b"2", b"3", b"4", b"5"]
    sess.run(other.restore_state(state), {state: saved})
    assert sess.run(other.read(producer([names[1]]))[1]) == b"2"
    sess.run(other.reset())
    assert sess.run(other.num_records_produced()) == 0


def test_a_state_lets_those_go_on_who_wait(sess: fb.Session, tmp_path: Path) -> None:
    (path,) = files(tmp_path, a="1\n2\n")
    queue, reader = fb.FIFOQueue(1, fb.string, shapes=[[]]), fb.TextLineReader()
    sess.run(queue.enqueue(path))
    sess.run(reader.read(queue))
    saved = state_of(sess, reader)
    sess.run(reader.reset())
    waiting = begun(sess, queue, reader.read(queue)[1])
    sess.run(reader.restore_state(saved))
    assert waiting.result() == b"2"
    assert waiters(sess, reader) == 0


def test_what_came_back_is_given_again_many_at_a_time(
    sess: fb.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, count = fb.IdentityReader(), 1000
    names = fb.FIFOQueue(-1, fb.string, shapes=[[]])
    parts = [reader.read_up_to(names, each)[1] for each in (600, 400)]
    lines = [b"%d" % number for number in range(count)]
    state = json.loads(state_of(sess, reader))
    state["returned"] = [[base64.b64encode(line).decode()] * 2 for line in lines]
    sess.run([reader.restore_state(json.dumps(state)), names.close()])
    moves: list[Any] = []
    advance = Reader._advance
    monkeypatch.setattr(Reader, "_advance", lambda *a: moves.append(a) or advance(*a))
    assert [line for values in parts for line in sess.run(values)] == lines
    assert len(moves) == len(parts)
    assert json.loads(state_of(sess, reader))["returned"] == []


@pytest.mark.parametrize(
    "change",
    [
        {"place": [1]},
        {"place": [-1, 0]},
        {"place": [True, 0]},
        {"place": "12"},
        {"place": [1 << 64, 0]},
        {"place": None},
        {"files": 1.5},
        {"records": "1"},
        {"file": 7},
        {"file": "not base64!"},
        {"next": "YQ=="},
        {"next": 7},
        {"returned": [["YQ=="]]},
        {"returned": {"YQ==": 1}},
        {"more": 1},
    ],
)
def test_what_is_no_state_is_refused(
    sess: fb.Session, tmp_path: Path, change: dict[str, Any]
) -> None:
    reader = fb.TextLineReader()
    value = reader.read(producer(files(tmp_path, a="1\n2\n")))[1]
    sess.run(value)
    saved = state_of(sess, reader)
    for bad in (json.dumps({**json.loads(saved), **change}), "", "[]", "{", "[" * 100_000):
        with pytest.raises(fb.errors.InvalidArgumentError, match="is no state of a reader"):
            sess.run(reader.restore_state(bad))
    assert state_of(sess, reader) == saved
    assert sess.run(value) == b"2"


# Sharing


def test_readers_are_shared_by_name(tmp_path: Path) -> None:
    names = producer(files(tmp_path, a="1\n2\n3\n"))
    one, two = (fb.TextLineReader(shared_name="shared") for _ in range(2))
    with fb.Session() as sess:
        first, second = one.read(names)[1], two.read(names)[1]
        assert [sess.run(t) for t in (first, second, first)] == [b"1", b"2", b"3"]
        other = fb.TextLineReader(skip_header_lines=2, shared_name="shared")
        with pytest.raises(fb.errors.InvalidArgumentError, match="another skip_header_lines"):
            sess.run(other.num_records_produced())
        queue = fb.FIFOQueue(1, fb.string, shapes=[[]], shared_name="shared")
        with pytest.raises(fb.errors.InvalidArgumentError, match="a reader, not a fifo_queue"):
            sess.run(queue.size())


def test_a_name_that_two_threads_bring_comes_once(sess: fb.Session) -> None:
    names, reader = fb.FIFOQueue(4, fb.string, shapes=[[]]), fb.IdentityReader()
    value = reader.read(names)[1]
    sess.run(names.size())
    first = begun(sess, names, value)
    order = next(iter(held(sess, reader)._lines[0])).order
    sess.run(names.enqueue("a"))
    assert first.result() == b"a"
    second = begun(sess, names, value)
    sess.run(names.enqueue("b"))
    assert second.result() == b"b"
    late = np.empty((), object)
    late[()] = b"a"
    order.complete((late,))  # As a thread that was slower than another one.
    assert held(sess, reader)._progress.next == ()


def test_many_threads_read_each_record_once(tmp_path: Path) -> None:
    names = files(tmp_path, **{f"f{n}": "".join(f"{n}-{i}\n" for i in range(7)) for n in range(40)})
    queue = producer(names)
    readers = [fb.TextLineReader() for _ in range(2)]
    values = [reader.read(queue)[1] for reader in readers]
    found: list[bytes] = []
    with fb.Session() as sess:

        def go_on(value: fb.Tensor) -> None:
            for line in fb.train.until_end(sess, value):
                found.append(line)

        threads = [threading.Thread(target=go_on, args=(v,)) for v in values * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == sorted(f"{n}-{i}".encode() for n in range(40) for i in range(7))
