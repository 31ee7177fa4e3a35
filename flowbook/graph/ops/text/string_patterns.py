"""Text searched by regular expressions, and split at separators.

Regular expressions are those of RE2, on strings as UTF-8: whatever the pattern, the time is
proportional to the length of a string, and a part of a character is never matched alone. A byte
that is not UTF-8 comes out as it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import re2

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import constant_value
from flowbook.graph.definition.op_def import HOST, OpDef
from flowbook.graph.model.dtypes import string
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import reshape
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.text.strings import mapped

__all__ = ["regex_full_match", "regex_replace", "split"]

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False  # They are raised.


@lru_cache(maxsize=256)
def _compiled(pattern: bytes) -> Any:
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        raise InvalidArgumentError(
            f"{pattern!r} is no regular expression: {error.args[0].decode(errors='replace')}",
            hint="patterns have the syntax of RE2: https://github.com/google/re2/wiki/Syntax",
        ) from None


@lru_cache(maxsize=256)
def _rewriting(rewrite: bytes, groups: int) -> Callable[[Any], bytes]:
    r"""What replaces a match: only \0 to \9 and \\ are special, as in RE2."""
    parts: list[bytes | int] = []
    place = 0
    while place < len(rewrite):
        if rewrite[place] != 0x5C:
            end = rewrite.find(b"\\", place)
            end = len(rewrite) if end < 0 else end
            parts.append(rewrite[place:end])
            place = end
            continue
        following = rewrite[place + 1 : place + 2]
        if following.isdigit():
            if int(following) > groups:
                raise InvalidArgumentError(
                    f"the rewrite {rewrite!r} names group {following.decode()} of {groups}"
                )
            parts.append(int(following))
        elif following == b"\\":
            parts.append(b"\\")
        else:
            raise InvalidArgumentError(
                f"the rewrite {rewrite!r} has a backslash before neither a digit nor another one"
            )
        place += 2

    def replace(match: Any) -> bytes:
        return b"".join(match[p] or b"" if isinstance(p, int) else p for p in parts)

    return replace


def _replaced(
    compiled: Any, replace: Callable[[Any], bytes], is_global: bool, text: bytes
) -> bytes:
    """A string with matches replaced, of which an empty one never follows another at once."""
    parts: list[bytes] = []
    done = start = 0  # How much of the string is in the parts, and where to look on.
    while start <= len(text) and (match := compiled.search(text, start)) is not None:
        begin, end = match.span()
        if parts and begin == end == done:
            start = done + _length_of_character(text[done : done + 4])
            continue
        parts += (text[done:begin], replace(match))
        done = start = end
        if not is_global:
            break
    return b"".join((*parts, text[done:]))


def _length_of_character(text: bytes) -> int:
    """How many bytes the first character has; 1 where the first byte is of none."""
    return len(text.decode(errors="surrogateescape")[:1].encode(errors="surrogateescape")) or 1


def _known_text(name: str, tensor: Tensor) -> bytes | None:
    """A scalar argument, where it is known at construction."""
    if tensor.shape.rank not in (None, 0):
        raise InvalidArgumentError(f"{name!r} is a scalar, not of shape {tensor.shape}")
    known = constant_value(tensor)
    text: bytes | None = None if known is None else known.item()
    return text


def _scalar_text(name: str, value: Any) -> bytes:
    if value.ndim:
        raise InvalidArgumentError(f"{name!r} is a scalar, not of shape {list(value.shape)}")
    text: bytes = value.item()
    return text


def _replaced_shape(input: Tensor, pattern: Tensor, rewrite: Tensor, replace_global: bool) -> Shape:
    known, text = _known_text("pattern", pattern), _known_text("rewrite", rewrite)
    if known is not None:
        compiled = _compiled(known)
        if text is not None:
            _rewriting(text, compiled.groups)
    return input.shape


def _regex_replace(xp: Any, input: Any, pattern: Any, rewrite: Any, replace_global: bool) -> Any:
    compiled = _compiled(_scalar_text("pattern", pattern))
    replace = _rewriting(_scalar_text("rewrite", rewrite), compiled.groups)
    return mapped(lambda text: _replaced(compiled, replace, replace_global, text), input)


regex_replace = OpDef(
    "RegexReplace",
    "input: string, pattern: string, rewrite: string -> output: string",
    attributes={"replace_global": True},
    infer=_replaced_shape,
    kernel=_regex_replace,
    kinds=HOST,
    only_moves=True,
    doc=r"""Strings with the matches of a regular expression replaced.

    Patterns have the syntax of RE2, as in TensorFlow, and take time in proportion to the length of
    a string: there are neither look-around nor back-references. Strings are taken as UTF-8, so that
    `.` is a character, while `\d`, `\s` and `\w` know ASCII alone; a byte that is not UTF-8 is
    matched by nothing.

    Args:
        input: a string tensor.
        pattern: a string scalar.
        rewrite: a string scalar in which `\0` stands for the match, `\1` to `\9` for what its
            groups matched, and `\\` for a backslash.
        replace_global: replace all matches, or else the first.

    Raises:
        InvalidArgumentError: if the pattern or the rewrite is not valid; in the run, where it is
            known only then.
    """,
)


def _matched_shape(input: Tensor, pattern: Tensor) -> Shape:
    known = _known_text("pattern", pattern)
    if known is not None:
        _compiled(known)
    return input.shape


def _regex_full_match(xp: Any, input: Any, pattern: Any) -> Any:
    match = _compiled(_scalar_text("pattern", pattern)).fullmatch
    return mapped(lambda text: match(text) is not None, input, dtype=np.bool_)


regex_full_match = OpDef(
    "RegexFullMatch",
    "input: string, pattern: string -> output: bool",
    infer=_matched_shape,
    kernel=_regex_full_match,
    kinds=HOST,
    only_moves=True,
    doc="""Whether a regular expression matches strings from their beginnings to their ends.

    The pattern is a string scalar in the syntax of RE2; see `regex_replace`.
    """,
)


def _split_shape(input: Tensor, sep: Tensor, maxsplit: int, skip_empty: bool) -> list[Shape]:
    if input.shape.rank not in (None, 1):
        raise InvalidArgumentError(f"what to split is a vector, not of shape {input.shape}")
    if sep.shape.rank not in (None, 0, 1):
        raise InvalidArgumentError(f"'sep' is a scalar or a vector, not of shape {sep.shape}")
    return [Shape((None, 2)), Shape((None,)), Shape((2,))]


def _splitter(sep: Any, maxsplit: int) -> Callable[[bytes], list[bytes]]:
    """What makes parts of a string."""
    if sep.ndim == 0:
        # No separator means any white space, of which several in a row are one.
        between = sep.item() or None
        return lambda text: text.split(between, maxsplit)
    if sep.ndim > 1:
        raise InvalidArgumentError(f"'sep' is a scalar or a vector, not of shape {list(sep.shape)}")
    if maxsplit != -1:
        raise InvalidArgumentError("'maxsplit' counts separators of one kind, not of several")
    separators = sep.tolist()
    if b"" in separators:
        raise InvalidArgumentError("of several separators none is empty")
    if not separators:
        return lambda text: [text[i : i + 1] for i in range(len(text))]
    divide = re.compile(b"|".join(map(re.escape, separators))).split
    return lambda text: divide(text) if text else []


def _split(xp: Any, input: Any, sep: Any, maxsplit: int, skip_empty: bool) -> Any:
    if input.ndim != 1:
        raise InvalidArgumentError(f"what to split is a vector, not of shape {list(input.shape)}")
    rows = [*map(_splitter(sep, maxsplit), input.tolist())]
    if skip_empty:
        rows = [[part for part in row if part] for row in rows]
    counts = np.array([len(row) for row in rows], np.int64)
    indices = np.empty((int(counts.sum()), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(rows)), counts)
    indices[:, 1] = np.arange(len(indices)) - np.repeat(np.cumsum(counts) - counts, counts)
    values = np.empty(len(indices), object)
    values[:] = [part for row in rows for part in row]
    return indices, values, np.array([len(rows), counts.max(initial=0)], np.int64)


split_op: OpDef[tuple[Tensor, Tensor, Tensor]] = OpDef(
    "StringSplit",
    "input: string, sep: string -> indices: int64, values: string, shape: int64",
    attributes={"maxsplit": -1, "skip_empty": False},
    infer=_split_shape,
    kernel=_split,
    kinds=HOST,
    only_moves=True,
)


@split_op.front
@composed("StringSplit")
def split(
    input: Any,
    sep: Any = None,
    maxsplit: int = -1,
    skip_empty: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """Strings split at separators.

    Args:
        input: a string vector, or a single string.
        sep: a string scalar; None or "" splits at white space, of which several in a row are one
            and that at the ends counts for nothing. Or a string vector: splits at each of its
            strings, the first that fits, and where there are none between all bytes.
        maxsplit: at how many separators at most; -1 splits at all, as several kinds have to.
        skip_empty: leave out empty parts.

    Returns:
        The parts [strings, places], sparse: a row for each string.

    >>> import flowbook as fb
    >>> parts = fb.strings.split(["a b", "c"])
    >>> with fb.Session() as sess:
    ...     sess.run(parts.values)
    array([b'a', b'b', b'c'], dtype=object)
    """
    input = convert_to_tensor(input, string)
    if input.shape.rank == 0:
        input = reshape(input, [1])
    sep = convert_to_tensor("" if sep is None else sep, string)
    parts = split_op(input, sep, maxsplit=maxsplit, skip_empty=bool(skip_empty))
    return SparseTensor(*parts)
