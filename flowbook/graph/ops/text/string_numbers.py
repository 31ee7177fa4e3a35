"""Text and numbers: reading, writing, hashing, and the encodings of bytes."""

from __future__ import annotations

import base64
import binascii
import math
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from flowbook.graph.definition.inference import same_as_input
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.dtypes import INDICES, INTS, NUMBERS, DType, as_dtype, float32, float64
from flowbook.graph.model.dtypes import bool as bool_
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.hashing import fingerprint, siphash
from flowbook.graph.ops.text.strings import mapped

__all__ = ["as_string", "to_hash_bucket_fast", "to_hash_bucket_strong", "to_number"]


def _of_text(
    type: str, output: str, kernel: Callable[..., Any], doc: str | None = None, **attributes: Any
) -> OpDef:
    return OpDef(
        type,
        f"input: string -> output: {output}",
        attributes=attributes,
        infer=same_as_input,
        kernel=kernel,
        kinds=HOST,
        grad=NO_GRADIENT,
        only_moves=True,
        doc=doc,
    )


def _to_number(xp: Any, input: Any, out_type: DType) -> Any:
    return mapped(number_reader(out_type), input, dtype=out_type.numpy)


@cache
def number_reader(dtype: DType) -> Callable[[bytes], Any]:
    """What reads a number of a dtype that a string spells.

    Of what is none, or an integer too large, it raises InvalidArgumentError.
    """
    if dtype.is_floating:
        return lambda text: _read(float, text)
    least, most = dtype.min, dtype.max

    def read(text: bytes) -> int:
        number = _read(int, text)
        if not least <= number <= most:
            raise InvalidArgumentError(f"{text!r} does not fit {dtype.name}")
        return number  # type: ignore[no-any-return]

    return read


def _read(number: type, text: bytes) -> Any:
    try:
        # Python's own marks for readers are no part of numbers elsewhere.
        if b"_" in text:
            raise ValueError
        if number is float and b"x" in text.lower():
            return float.fromhex(text.decode("ascii"))
        return number(text)
    except (ValueError, OverflowError):
        what = "whole number" if number is int else "number"
        raise InvalidArgumentError(f"{text!r:.60} is no {what}") from None


to_number_op = _of_text("StringToNumber", "out_type", _to_number, out_type=float32)


@to_number_op.front
def to_number(input: Any, out_type: Any = float32, name: str | None = None) -> Tensor:
    """The numbers that strings spell; floats also to the base of 16, as C does: "0x1F", "0x1.8p3".

    Args:
        input: a string tensor.
        out_type: float32, float64, int32 or int64.

    Raises:
        InvalidArgumentError: in the run, if a string is no number, or too large an integer.
    """
    wanted = as_dtype(out_type)
    if wanted not in (float32, float64, *INDICES):
        raise InvalidTypeError(f"numbers are read as floats or int32, int64, not {wanted.name}")
    return to_number_op(input, out_type=wanted, name=name)


def _as_string(
    xp: Any,
    input: Any,
    precision: int,
    scientific: bool,
    shortest: bool,
    width: int,
    fill: str,
) -> Any:
    size = str(width) if width >= 0 else ""
    if input.dtype.kind == "b":
        return mapped(lambda v: f"%{size}s".encode() % (b"true" if v else b"false"), input)
    if input.dtype.kind in "iu":
        # As C has it: a number that has no sign shows none.
        fill = "" if input.dtype.kind == "u" and fill in (" ", "+") else fill
        form = f"%{fill}{size}d".encode()
        return mapped(lambda v: form % v, input)
    kind = "e" if scientific else "g" if shortest else "f"
    digits = f".{precision}" if precision >= 0 else ""
    form = f"%{fill}{size}{digits}{kind}".encode()
    # As C has it, and Python has not: zeros before "inf" would be no number.
    words = f"%{size}{kind}".encode() if fill == "0" else form

    def write(value: float) -> bytes:
        return (form if math.isfinite(value) else words) % value

    if input.dtype.kind == "c":
        return mapped(lambda v: b"(%b,%b)" % (write(v.real), write(v.imag)), input)
    return mapped(write, input.astype(np.float64))


# A width is for columns: without a limit the file of a graph could ask for any amount of memory.
_WIDEST = 10_000


def _written_shape(
    input: Tensor, precision: int, scientific: bool, shortest: bool, width: int, fill: str
) -> Shape:
    if max(width, precision) > _WIDEST:
        raise InvalidArgumentError(
            f"width and precision are {_WIDEST} at most, not {max(width, precision)}"
        )
    if scientific and shortest:
        raise InvalidArgumentError("numbers are written either scientific or shortest")
    if input.dtype in (bool_, *INTS) and (precision >= 0 or scientific or shortest):
        raise InvalidArgumentError(
            f"precision, scientific and shortest are for floats, not {input.dtype.name}"
        )
    if input.dtype is bool_ and fill:
        raise InvalidArgumentError("truth values are filled with spaces only")
    return input.shape


as_string = OpDef(
    "AsString",
    "input: T -> output: string",
    T=(*NUMBERS, bool_),
    attributes={
        "precision": -1,
        "scientific": False,
        "shortest": False,
        "width": -1,
        "fill": "",
    },
    choices={"fill": ("", "0", " ", "+", "-")},
    infer=_written_shape,
    kernel=_as_string,
    kinds=HOST,
    only_moves=True,
    doc="""Numbers written as strings.

    Args:
        input: of a number dtype or bool.
        precision: how many digits floats have after the point, 6 by default.
        scientific: write floats with an exponent.
        shortest: write floats with or without an exponent, whichever is shorter.
        width: the least length; shorter ones are filled up on the left.
        fill: what with: "0", or else spaces; "-" fills on the right, "+" shows the sign always,
            and " " leaves room for it.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     sess.run(fb.strings.as_string([3.14159, 2.0], precision=2, width=6))
    array([b'  3.14', b'  2.00'], dtype=object)
    """,
)


def _check_buckets(input: Tensor, num_buckets: int, **_: Any) -> Shape:
    if not hasattr(num_buckets, "__index__"):
        raise InvalidTypeError(f"num_buckets is an int, not {num_buckets!r}")
    if num_buckets < 1:
        raise InvalidArgumentError(f"there is at least one bucket, not {num_buckets}")
    return input.shape


to_hash_bucket_fast = OpDef(
    "StringToHashBucketFast",
    "input: string -> output: int64",
    attributes={"num_buckets": REQUIRED},
    infer=_check_buckets,
    kernel=lambda xp, input, num_buckets: mapped(
        lambda text: fingerprint(text) % num_buckets, input, dtype=np.int64
    ),
    kinds=HOST,
    only_moves=True,
    doc="""A number for each string, from its hash: the same always and everywhere, as TensorFlow's.

    Whoever chooses the strings can find many of one bucket; `to_hash_bucket_strong` has a key.

    Args:
        input: a string tensor.
        num_buckets: an int; results are in [0, num_buckets).

    Returns:
        int64, of the shape of `input`.

    Source: FarmHash's 64-bit fingerprint.
    """,
    function="to_hash_bucket_fast",
)


def _strong(xp: Any, input: Any, num_buckets: int, key: tuple[int, int]) -> Any:
    words = key[0] % 2**64, key[1] % 2**64
    return mapped(lambda text: siphash(words, text) % num_buckets, input, dtype=np.int64)


hash_bucket_strong_op = OpDef(
    "StringToHashBucketStrong",
    "input: string -> output: int64",
    attributes={"num_buckets": REQUIRED, "key": REQUIRED},
    infer=_check_buckets,
    kernel=_strong,
    kinds=HOST,
    only_moves=True,
)


@hash_bucket_strong_op.front
def to_hash_bucket_strong(
    input: Any, num_buckets: int, key: Any, name: str | None = None
) -> Tensor:
    """A number for each string, from its hash with a key, without which nobody can predict it.

    Args:
        input: a string tensor.
        num_buckets: an int; results are in [0, num_buckets).
        key: two ints of 64 bits.

    Returns:
        int64, of the shape of `input`, as TensorFlow gives it.

    Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.
    """
    if not all(hasattr(k, "__index__") for k in key):
        raise InvalidTypeError(f"a key is two ints, not {key!r}")
    words = tuple(int(k) for k in key)
    if len(words) != 2:
        raise InvalidArgumentError(f"a key is two ints, not {list(words)}")
    return hash_bucket_strong_op(input, num_buckets=num_buckets, key=words, name=name)


def _encode_base64(xp: Any, input: Any, pad: bool) -> Any:
    def encode(text: bytes) -> bytes:
        found = base64.urlsafe_b64encode(text)
        return found if pad else found.rstrip(b"=")

    return mapped(encode, input)


encode_base64_op = _of_text("EncodeBase64", "string", _encode_base64, pad=False)


@encode_base64_op.front
def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Strings in base64, in the alphabet that is safe in addresses of the web: "-" and "_".

    Args:
        input: a string tensor.
        pad: fill up with "=" to a multiple of four characters.
    """
    return encode_base64_op(input, pad=bool(pad), name=name)


def _decode_base64(text: bytes) -> bytes:
    body = text.rstrip(b"=")
    missing = -len(body) % 4
    try:
        if len(text) != len(body) and (missing > 2 or len(text) - len(body) != missing):
            raise binascii.Error("wrong padding")
        if b"+" in text or b"/" in text:
            raise binascii.Error("its characters are not those of the web-safe alphabet")
        return base64.b64decode(body + b"=" * missing, altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise InvalidArgumentError(f"{text!r:.60} is no base64: {error}") from None


decode_base64 = _of_text(
    "DecodeBase64",
    "string",
    lambda xp, input: mapped(_decode_base64, input),
    doc="""What strings in web-safe base64 encode; padding with "=" may be there or not.

    Raises:
        InvalidArgumentError: in the run, if a string is no base64.
    """,
)


def _raw_shape(input_bytes: Tensor, **_: Any) -> Shape:
    return input_bytes.shape.concatenate((None,))


def _decode_raw(xp: Any, input_bytes: Any, out_type: DType, little_endian: bool) -> Any:
    lengths = {len(text) for text in input_bytes.ravel().tolist()}
    if len(lengths) > 1:
        raise InvalidArgumentError(
            f"strings are of one length, not of {' and '.join(map(str, sorted(lengths)[:5]))} bytes"
        )
    length = lengths.pop() if lengths else 0
    if length % out_type.size:
        raise InvalidArgumentError(
            f"{length} bytes are no multiple of the {out_type.size} of {out_type.name}"
        )
    whole = np.frombuffer(b"".join(input_bytes.ravel().tolist()), out_type.numpy)
    if little_endian != (sys.byteorder == "little"):
        whole = whole.byteswap()
    if out_type is bool_:
        whole = whole.view(np.uint8) != 0
    return whole.reshape(*input_bytes.shape, length // out_type.size).copy()


decode_raw_op = OpDef(
    "DecodeRaw",
    "input_bytes: string -> output: out_type",
    attributes={"out_type": REQUIRED, "little_endian": True},
    infer=_raw_shape,
    kernel=_decode_raw,
    kinds=HOST,
    grad=NO_GRADIENT,
    only_moves=True,
)


@decode_raw_op.front
def decode_raw(
    input_bytes: Any, out_type: Any, little_endian: bool = True, name: str | None = None
) -> Tensor:
    """Numbers from the bytes that represent them in memory.

    Args:
        input_bytes: a string tensor; all strings have one length, a multiple of the dtype's.
        out_type: a number dtype or bool.
        little_endian: whether the least significant byte comes first.

    Returns:
        A tensor with one dimension more, along which the numbers of a string lie.

    Raises:
        InvalidArgumentError: in the run, if lengths do not fit.
    """
    wanted = as_dtype(out_type)
    if not (wanted.is_numeric or wanted is bool_):
        raise InvalidTypeError(f"bytes are numbers or truth values, not {wanted.name}")
    return decode_raw_op(input_bytes, out_type=wanted, little_endian=bool(little_endian), name=name)
