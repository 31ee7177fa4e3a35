"""Lines of comma-separated values, each field as a tensor."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import repeat
from typing import Any

import numpy as np

from flowbook.graph.definition.inference import uncounted
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import INDICES, DType, float32, float64, string
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.text.string_numbers import number_reader

__all__ = ["decode_csv"]

_READABLE = (float32, float64, *INDICES, string)


def _columns(records: Tensor, defaults: Sequence[Tensor], **_: Any) -> list[Shape]:
    for default in defaults:
        _check_default(default.shape)
    return [records.shape for _ in defaults]


def _check_default(shape: Any) -> None:
    if shape not in ((), (0,), (1,)) and not any(
        Shape(shape).is_compatible_with(fitting) for fitting in ([], [0], [1])
    ):
        raise InvalidArgumentError(
            f"a default is a scalar or a vector of one element, or of none where a field may not "
            f"be missing, not of shape {Shape(shape)}"
        )


def _fields(record: bytes, delimiter: str, quoted: bool) -> list[bytes]:
    if not (quoted and b'"' in record) and b"\n" not in record and b"\r" not in record:
        return record.split(delimiter.encode())
    try:
        found = next(_read([record], delimiter, quoted))
    except csv.Error as error:
        raise InvalidArgumentError(f"{record!r:.60} is no record: {error}") from None
    return _as_bytes(found) or [b""]


def _read(records: Iterable[bytes], delimiter: str, quoted: bool) -> Iterator[list[str]]:
    """Rows of fields, of which each byte is one character: text of any encoding stays as it is."""
    return csv.reader(
        [record.decode("latin-1") for record in records],
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        strict=True,
    )


def _as_bytes(fields: Iterable[str]) -> list[bytes]:
    return [field.encode("latin-1") for field in fields]


def _decode(
    xp: Any,
    records: Any,
    *defaults: Any,
    Tout: tuple[DType, ...],
    field_delim: str,
    use_quote_delim: bool,
    na_value: str,
    select_cols: tuple[int, ...],
) -> tuple[Any, ...]:
    for default in defaults:
        _check_default(default.shape)
    columns = select_cols or tuple(range(len(Tout)))
    texts = records.ravel().tolist()
    fields = _columns_at_once(texts, field_delim, use_quote_delim)
    if fields is None or (len(fields) <= columns[-1] if select_cols else len(fields) != len(Tout)):
        rows = _rows(records, columns, field_delim, use_quote_delim, bool(select_cols))
        wanted = [[row[column] for row in rows] for column in columns]
    else:
        wanted = [fields[column] for column in columns]
    found = []
    for column, given, dtype, default in zip(columns, wanted, Tout, defaults, strict=True):
        result = np.empty(records.size, object if dtype is string else dtype.numpy)
        try:
            result[:] = _values(given, dtype, default, {b"", na_value.encode()})
        except _Wrong as wrong:
            record = records.ravel()[wrong.number]
            which = _which(wrong.number, records)
            raise InvalidArgumentError(
                f"field {column} of {record!r:.60} {wrong}{which}",
                hint="the first field and the first record are 0",
            ) from None
        found.append(result.reshape(records.shape))
    return tuple(found)


def _columns_at_once(
    records: Sequence[bytes], delimiter: str, quoted: bool
) -> list[list[bytes]] | None:
    """The fields of records, column by column.

    Returns:
        What `_fields` gives for each of them; None if they are not of one length, or one is none.
    """
    mark = delimiter.encode()
    together = mark.join(records)
    if not (quoted and b'"' in together) and b"\n" not in together and b"\r" not in together:
        counts = {*map(bytes.count, records, repeat(mark))}
        if len(counts) != 1:
            return None
        fields, width = together.split(mark), 1 + counts.pop()
        return [fields[column::width] for column in range(width)]
    try:
        rows = [*_read(records, delimiter, quoted)]
    except csv.Error:
        return None
    # A record that has no end goes on in the next one.
    if len(rows) != len(records) or len({*map(len, rows)}) != 1:
        return None
    return [_as_bytes(column) for column in zip(*rows, strict=True)]


def _rows(
    records: Any, columns: Sequence[int], delimiter: str, quoted: bool, is_selecting: bool
) -> list[list[bytes]]:
    """The fields of each record, which has those of some columns, and no others if these are all.

    Raises:
        InvalidArgumentError: which record has not, or is none.
    """
    rows = []
    for number, record in enumerate(records.ravel().tolist()):
        try:
            fields = _fields(record, delimiter, quoted)
            if len(fields) <= columns[-1] if is_selecting else len(fields) != len(columns):
                count = f"more than {columns[-1]}" if is_selecting else len(columns)
                raise InvalidArgumentError(
                    f"{record!r:.60} has {counted(len(fields), 'field')}, not {count}"
                )
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{error.message}{_which(number, records)}") from None
        rows.append(fields)
    return rows


class _Wrong(Exception):
    """What is wrong with a field; `number` says in which record."""

    def __init__(self, what: str, number: int) -> None:
        super().__init__(what)
        self.number = number


def _values(texts: Sequence[bytes], dtype: DType, default: Any, missing: Set[bytes]) -> Any:
    """The values of one field of all records."""
    instead = default.item() if default.size else None
    try:
        return _values_at_once(texts, dtype, instead, missing)
    except (ValueError, OverflowError):
        return _values_one_by_one(texts, dtype, instead, missing)


def _values_at_once(texts: Sequence[bytes], dtype: DType, instead: Any, missing: Set[bytes]) -> Any:
    """The same where Python reads all of them as `number_reader` does; else it raises an error."""
    if instead is None and not missing.isdisjoint(texts):
        raise ValueError
    if dtype is string:
        return [instead if text in missing else text for text in texts]
    if b"_" in b"".join(texts):
        raise ValueError  # A mark for readers of Python.
    number = float if dtype.is_floating else int
    found = [instead if text in missing else number(text) for text in texts]
    return np.array(found, dtype.numpy)


def _values_one_by_one(
    texts: Sequence[bytes], dtype: DType, instead: Any, missing: Set[bytes]
) -> Any:
    """The same, whatever is in the way; raises `_Wrong` if one is no value."""
    read = None if dtype is string else number_reader(dtype)
    values: list[Any] = []
    for text in texts:
        if text not in missing:
            try:
                values.append(text if read is None else read(text))
            except InvalidArgumentError as error:
                raise _Wrong(f"is to be {dtype.name}: {error.message}", len(values)) from None
        elif instead is not None:
            values.append(instead)
        else:
            raise _Wrong("is missing", len(values))
    return values


def _which(number: int, records: Any) -> str:
    """Which of the records is meant, where there are several."""
    if not records.ndim:
        return ""
    place = [int(index) for index in np.unravel_index(number, records.shape)]
    return f" (record {place[0] if len(place) == 1 else place})"


decode_csv_op: OpDef[list[Tensor]] = OpDef(
    "DecodeCSV",
    "records: string, defaults: *defaults -> output: *Tout",
    attributes={
        "Tout": REQUIRED,
        "field_delim": ",",
        "use_quote_delim": True,
        "na_value": "",
        "select_cols": (),
    },
    infer=_columns,
    kernel=_decode,
    kinds=HOST,
    grad=NO_GRADIENT,
    cost=uncounted,
)


@decode_csv_op.front
def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """The fields of comma-separated values, a tensor for each.

    Args:
        records: a string tensor, each element a line.
        record_defaults: for each field what it is where it is empty: a scalar, or a list of one; an
            empty list where it may not be. Their dtypes are those of the fields: float32, float64,
            int32, int64 or string.
        field_delim: what stands between fields, one character.
        use_quote_delim: whether double quotes enclose fields, in which two of them mean one;
            otherwise they are characters like others.
        na_value: what counts as empty besides nothing.
        select_cols: which fields there are defaults for, in ascending order; all by default.

    Returns:
        For each default a tensor of the records' shape.

    Raises:
        InvalidArgumentError: in the run, with the record and the field, if a record has other
            fields, or one is no number, or is in quotes and longer than `csv.field_size_limit()`
            of Python's own reader.

    >>> import flowbook as fb
    >>> x, label = fb.decode_csv(["0.5,cat", ',"a, b"'], [[1.0], ["?"]])
    >>> with fb.Session() as sess:
    ...     print(sess.run(x), sess.run(label))
    [0.5 1. ] [b'cat' b'a, b']
    """
    if len(field_delim) != 1 or not field_delim.isascii() or field_delim in '"\r\n':
        raise InvalidArgumentError(f"field_delim is one character, not {field_delim!r}")
    columns = tuple(select_cols or ())
    if list(columns) != sorted({*columns}) or min(columns, default=0) < 0:
        raise InvalidArgumentError(f"select_cols are in ascending order, not {list(columns)}")
    if columns and len(columns) != len(record_defaults):
        raise InvalidArgumentError(
            f"there are {counted(len(record_defaults), 'default')} for "
            f"{counted(len(columns), 'field')}"
        )
    defaults = [convert_to_tensor(default) for default in record_defaults]
    for default in defaults:
        if default.dtype not in _READABLE:
            raise InvalidTypeError(f"fields are not read as {default.dtype.name}")
    return decode_csv_op(
        records,
        defaults,
        Tout=[t.dtype for t in defaults],
        field_delim=field_delim,
        use_quote_delim=bool(use_quote_delim),
        na_value=na_value,
        select_cols=columns,
        name=name,
    )
