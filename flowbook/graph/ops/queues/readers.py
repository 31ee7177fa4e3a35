"""Readers: records of files, one after another, whose names come from a queue.

A reader is a resource, and what reads is an operation, which opens files where it runs and waits
for their names as what takes elements from a queue does.
"""

from __future__ import annotations

from typing import Any

from flowbook.graph.building.names import name_from
from flowbook.graph.building.scopes import init_scope
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.attributes import check_choice
from flowbook.graph.model.dtypes import string
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import SCALAR, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import READER, TAKES
from flowbook.graph.model.whole_numbers import as_whole
from flowbook.graph.ops.queues.queue import Queue
from flowbook.graph.ops.queues.waiting_ops import looking_op, owning_op, waiting_op

__all__ = [
    "FixedLengthRecordReader",
    "IdentityReader",
    "Reader",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
]

# How files may be compressed: the empty string stands for not at all.
COMPRESSIONS = ("", "gzip", "zlib")


def reader_op(type: str, format: str, **attributes: Any) -> OpDef:
    """The definition of a reader.

    Args:
        type: its type.
        format: what kernels call the format of its files.
        **attributes: the defaults of others; as for all that own a resource, some are added.
    """
    choices: dict[str, tuple[str, ...]] = {"format": (format,)}
    if "compression" in attributes:
        choices["compression"] = COMPRESSIONS
    return owning_op(type, READER, choices, format=format, **attributes)


identity_reader_op = reader_op("IdentityReader", "names")
whole_file_reader_op = reader_op("WholeFileReader", "whole_files")
text_line_reader_op = reader_op("TextLineReader", "text_lines", skip_header_lines=0, compression="")
fixed_length_record_reader_op = reader_op(
    "FixedLengthRecordReader",
    "fixed_length_records",
    record_bytes=REQUIRED,
    header_bytes=0,
    footer_bytes=0,
    hop_bytes=0,
    compression="",
    skip_damaged=False,
)
tf_record_reader_op = reader_op("TFRecordReader", "tf_records", compression="", skip_damaged=False)


def _one(reader: Tensor, queue: Tensor, **_: Any) -> list[Shape]:
    _check_names(queue)
    return [SCALAR, SCALAR]


def _several(reader: Tensor, queue: Tensor, count: Tensor, **_: Any) -> list[Shape]:
    _check_names(queue)
    return [Shape([None]), Shape([None])]


def _check_names(queue: Tensor) -> None:
    """Refuse what names of files do not come from, where its handle tells."""
    attributes = queue.op.attributes
    dtypes, shapes = attributes.get("dtypes"), attributes.get("shapes")
    if dtypes is None or shapes is None:
        return
    if dtypes != (string,) or not shapes[0].is_compatible_with(SCALAR):
        elements = ", ".join(f"{t.name} {s}" for t, s in zip(dtypes, shapes, strict=True))
        raise InvalidArgumentError(
            f"names of files come from a queue of string scalars, and {queue.op.name!r} has "
            f"{elements}"
        )


# A reader waits at its queue, which has to be filled.
_FOR_NAMES = TAKES._replace(argument=1)

read_op: OpDef[tuple[Tensor, Tensor]] = waiting_op(
    "ReaderRead",
    "reader: resource, queue: resource -> key: string, value: string",
    lambda context, reader, queue: reader.read(context, queue),
    _FOR_NAMES,
    infer=_one,
)
read_up_to_op: OpDef[tuple[Tensor, Tensor]] = waiting_op(
    "ReaderReadUpTo",
    "reader: resource, queue: resource, num_records: int64 -> keys: string, values: string",
    lambda context, reader, queue, count: reader.read_up_to(context, queue, count),
    _FOR_NAMES,
    infer=_several,
    host_args=("num_records",),
)
records_produced_op: OpDef = looking_op(
    "ReaderNumRecordsProduced",
    "reader: resource -> records: int64",
    lambda xp, reader: reader.records_produced(),
)
work_units_completed_op: OpDef = looking_op(
    "ReaderNumWorkUnitsCompleted",
    "reader: resource -> files: int64",
    lambda xp, reader: reader.work_units_completed(),
)
serialize_state_op: OpDef = looking_op(
    "ReaderSerializeState",
    "reader: resource -> state: string",
    lambda xp, reader: reader.serialized(),
)


def _one_state(reader: Tensor, state: Tensor) -> list[Shape]:
    if not state.shape.is_compatible_with(SCALAR):
        raise InvalidArgumentError(f"a state is a string scalar, not of shape {state.shape}")
    return []


restore_state_op: OpDef[Operation] = waiting_op(
    "ReaderRestoreState",
    "reader: resource, state: string ->",
    lambda context, reader, state: context.complete(reader.restore(state.item())),
    infer=_one_state,
)
reset_op: OpDef[Operation] = waiting_op(
    "ReaderReset",
    "reader: resource ->",
    lambda context, reader: context.complete(reader.reset()),
)


@elsewhere({"reader_ref": "reader.handle"})
class Reader:
    """What all readers have in common: they give the records of files as keys and values.

    The names of the files come from a queue, such as `fb.train.string_input_producer` makes, and
    may be URLs that fsspec knows. A reader takes the next name when it has given all records of the
    file before; several readers of one queue share its files. A read waits where the queue is
    empty, and is an OutOfRangeError where it is closed as well.

    What goes wrong with a file is an error of the read, and of each one after it: nothing is passed
    over that nobody has seen. `reset` has the reader go on with the next name.

    How far a reader has come belongs to a session's checkpoint, and so do the names that wait in
    the queue of `string_input_producer`. A training whose steps read themselves goes on with the
    record after the last one that it was given. Where threads read ahead, as those of `batch` do,
    what they have read and no step has used is left out when it goes on: at most what the queues
    between hold, and what each thread has under way. No record comes twice. What a named container
    shares is saved with each session whose graph has it, as a variable there is, and a restore
    changes it for all of them.

    Attributes:
        op: the operation that produces its handle.
        handle: the handle.
    """

    op: Operation
    handle: Tensor

    def _make(self, op_def: OpDef, name: str | None, **attributes: Any) -> None:
        shared_name = attributes.pop("shared_name") or ""
        with init_scope():
            self.handle = op_def(**attributes, shared_name=shared_name, name=name)
        self.op = self.handle.op

    @property
    def name(self) -> str:
        """The name of the operation that produces its handle."""
        return self.op.name

    def as_tensor(self, handle: bool) -> Tensor:
        """Its handle, which is all that operations can take of it."""
        if not handle:
            raise InvalidTypeError(
                f"reader {self.name!r} is no tensor", hint="reader.read(queue) gives records"
            )
        return self.handle

    def read(self, queue: Queue, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The next record.

        Args:
            queue: the queue of names of files.
            name: the operation's name.

        Returns:
            Its key and its value, string scalars. Keys are the names of files with numbers.

        Raises:
            InvalidArgumentError: if the queue has other elements.
            OutOfRangeError: in the run, if there are no more records.
            NotFoundError: in the run, if there is no such file.
            DataLossError: in the run, if it is damaged.
        """
        with self.op.graph.as_default():
            key, value = read_op(self.handle, _queue(queue), name=self._named(name, "read"))
        return key, value

    def read_up_to(
        self, queue: Queue, num_records: Any, name: str | None = None
    ) -> tuple[Tensor, Tensor]:
        """The next records: so many, or fewer where there are no more.

        Args:
            queue: as for `read`.
            num_records: how many: an int64 scalar.
            name: the operation's name.

        Returns:
            Their keys and their values, string vectors of at least one element. The records may
            lie in several files.
        """
        name = self._named(name, "read_up_to")
        with self.op.graph.as_default():
            keys, values = read_up_to_op(self.handle, _queue(queue), num_records, name=name)
        return keys, values

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records it has given: an int64 scalar."""
        with self.op.graph.as_default():
            return records_produced_op(self.handle, name=name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files it has read to their ends: an int64 scalar."""
        with self.op.graph.as_default():
            return work_units_completed_op(self.handle, name=name)

    def serialize_state(self, name: str | None = None) -> Tensor:
        """How far it has come, as a string scalar for `restore_state`."""
        with self.op.graph.as_default():
            return serialize_state_op(self.handle, name=name)

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """Have it go on from what `serialize_state` gave.

        It opens the files that the state names: take none whose origin you do not know.

        Args:
            state: a string scalar.
            name: the operation's name.

        Raises:
            InvalidArgumentError: in the run, if it is no state of such a reader.
        """
        with self.op.graph.as_default():
            return restore_state_op(self.handle, state, name=name)

    @property
    def supports_serialize(self) -> bool:
        """Whether its state can be saved, as that of every reader can."""
        return True

    def reset(self, name: str | None = None) -> Operation:
        """Have it forget its file, and go on with the next name from its queue."""
        with self.op.graph.as_default():
            return reset_op(self.handle, name=name)

    def _named(self, name: str | None, method: str) -> str:
        plain = name_from(self.op.name.rpartition("/")[2])
        return name if name is not None else f"{plain}_{method}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


def _queue(queue: Any) -> Tensor:
    if not isinstance(queue, Queue):
        raise InvalidTypeError(
            f"names of files come from a queue, not {queue!r:.80}",
            hint="fb.train.string_input_producer(names) makes one",
        )
    return queue.handle


def _compression(what: str, given: str | None) -> str:
    check_choice(what, given, (None, *filter(None, COMPRESSIONS)))
    return given or ""


def _count(what: str, value: Any, least: int) -> int:
    count = as_whole(value)
    if count is None or count < least:
        raise InvalidArgumentError(f"{what} is an integer from {least} on, not {value!r}")
    return count


@whole_file_reader_op.front
class WholeFileReader(Reader):
    """A reader whose records are whole files; keys are their names.

    Args:
        shared_name: a name under which several operations share one reader: those of one session,
            or, in a named container (`fb.container`), of all sessions of the process.
        name: the operation's name.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     sess.run(fb.write_file("memory://words.txt", "to be or not"))
    ...     names = fb.train.string_input_producer(["memory://words.txt"], num_epochs=1)
    ...     key, content = fb.WholeFileReader().read(names)
    ...     print(*sess.run([key, content]))
    b'memory://words.txt' b'to be or not'
    """

    def __init__(self, shared_name: str | None = None, name: str | None = None) -> None:
        self._make(whole_file_reader_op, name, shared_name=shared_name)


@identity_reader_op.front
class IdentityReader(Reader):
    """A reader that gives names as they are, as keys and as values, and opens no file.

    Args:
        shared_name: as for `WholeFileReader`.
        name: the operation's name.
    """

    def __init__(self, shared_name: str | None = None, name: str | None = None) -> None:
        self._make(identity_reader_op, name, shared_name=shared_name)


@text_line_reader_op.front
class TextLineReader(Reader):
    r"""A reader whose records are lines, without what ends them.

    Lines end with "\n" or "\r\n". A key is the name of the file and the number of the line in it,
    from 1 on, such as "data.csv:2".

    Args:
        skip_header_lines: how many lines to leave out at the beginning of each file.
        compression: "gzip", "zlib", or None.
        shared_name: as for `WholeFileReader`.
        name: the operation's name.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     sess.run(fb.write_file("memory://data.csv", "x,label\n0.5,cat\n1.5,dog\n"))
    ...     names = fb.train.string_input_producer(["memory://data.csv"], num_epochs=1)
    ...     key, line = fb.TextLineReader(skip_header_lines=1).read(names)
    ...     x, label = fb.decode_csv(line, [[0.0], [""]])
    ...     for row in fb.train.until_end(sess, (x, label)):
    ...         print(*row)
    0.5 b'cat'
    1.5 b'dog'
    """

    def __init__(
        self,
        skip_header_lines: int | None = None,
        compression: str | None = None,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        options = {
            "skip_header_lines": _count("skip_header_lines", skip_header_lines or 0, 0),
            "compression": _compression("compression", compression),
        }
        self._make(text_line_reader_op, name, **options, shared_name=shared_name)


@fixed_length_record_reader_op.front
class FixedLengthRecordReader(Reader):
    """A reader whose records have one length; `decode_raw` makes numbers of them.

    A key is the name of the file and the number of the record in it, from 0 on. Bytes that make
    less than a record at the end of a file are damage, unless `hop_bytes` is given.

    Args:
        record_bytes: the length of a record.
        header_bytes: how many bytes to leave out at the beginning of each file.
        footer_bytes: how many at its end.
        hop_bytes: how far behind the beginning of a record the next one begins, if that is not its
            length.
        encoding: "gzip" or "zlib" where files are compressed, or None.
        skip_damaged: whether an incomplete record at the end of a file is left out.
        shared_name: as for `WholeFileReader`.
        name: the operation's name.
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        encoding: str | None = None,
        skip_damaged: bool = False,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        options = {
            "record_bytes": _count("record_bytes", record_bytes, 1),
            "header_bytes": _count("header_bytes", header_bytes or 0, 0),
            "footer_bytes": _count("footer_bytes", footer_bytes or 0, 0),
            "hop_bytes": _count("hop_bytes", hop_bytes or 0, 0),
            "compression": _compression("encoding", encoding),
            "skip_damaged": bool(skip_damaged),
        }
        self._make(fixed_length_record_reader_op, name, **options, shared_name=shared_name)


@tf_record_reader_op.front
class TFRecordReader(Reader):
    """A reader of TensorFlow's files of records, which `fb.train.RecordWriter` writes.

    A key is the name of the file and the byte at which the record begins.

    Args:
        compression: "gzip", "zlib", or None.
        skip_damaged: whether records with wrong checksums are left out, and what follows a damaged
            length too, as nobody knows where the next record begins.
        shared_name: as for `WholeFileReader`.
        name: the operation's name.

    >>> import flowbook as fb
    >>> with fb.train.RecordWriter("memory://numbers.records") as records:
    ...     for n in range(3):
    ...         records.write(fb.serialize_example({"n": n}))
    >>> names = fb.train.string_input_producer(["memory://numbers.records"], num_epochs=1)
    >>> key, record = fb.TFRecordReader().read(names)
    >>> n = fb.parse_single_example(record, {"n": fb.FixedLenFeature([], fb.int64)})["n"]
    >>> with fb.Session() as sess:
    ...     print(*fb.train.until_end(sess, n))
    0 1 2
    """

    def __init__(
        self,
        compression: str | None = None,
        skip_damaged: bool = False,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        options = {
            "compression": _compression("compression", compression),
            "skip_damaged": bool(skip_damaged),
        }
        self._make(tf_record_reader_op, name, **options, shared_name=shared_name)
