"""Lines of comma-separated values, each field as a tensor."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.inference import uncounted
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
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
    if not any(Shape(shape).is_compatible_with(fitting) for fitting in ([], [0], [1])):
        raise InvalidArgumentError(
            f"a default is a scalar or a vector of one element, or of none where a field may not "
            f"be missing, not of shape {Shape(shape)}"
        )


def _fields(record: bytes, delimiter: str, quoted: bool) -> list[bytes]:
    # Each byte as one character, so that text of any encoding stays as it is.
    reader = csv.reader(
        [record.decode("latin-1")],
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        strict=True,
    )
    try:
        found = next(reader)
    except csv.Error as error:
        raise InvalidArgumentError(f"{record!r:.60} is no record: {error}") from None
    return [field.encode("latin-1") for field in found] or [b""]


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
    readers = [(lambda text: text) if t is string else number_reader(t) for t in Tout]
    found = [np.empty(records.shape, object if t is string else t.numpy) for t in Tout]
    missing = {b"", na_value.encode()}
    for place, record in np.ndenumerate(records):
        fields = _fields(record, field_delim, use_quote_delim)
        wanted = select_cols or range(len(Tout))
        if (not select_cols and len(fields) != len(Tout)) or max(wanted, default=-1) >= len(fields):
            raise InvalidArgumentError(
                f"{record!r:.60} has {len(fields)} fields, not "
                f"{f'more than {max(wanted)}' if select_cols else len(Tout)}"
            )
        for result, column, read, default in zip(found, wanted, readers, defaults, strict=True):
            text = fields[column]
            if text not in missing:
                result[place] = read(text)
            elif default.size:
                result[place] = default.item()
            else:
                raise InvalidArgumentError(f"field {column} of {record!r:.60} is missing")
    return tuple(found)


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
    aliases={},
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
        name: the operation's name.
        na_value: what counts as empty besides nothing.
        select_cols: which fields there are defaults for, in ascending order; all by default.

    Returns:
        For each default a tensor of the records' shape.

    Raises:
        InvalidArgumentError: in the run, if a record has other fields, or one is no number, or
            longer than `csv.field_size_limit()` of Python's own reader.

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
            f"there are {len(record_defaults)} defaults for {len(columns)} fields"
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
