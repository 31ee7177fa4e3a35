"""Text searched by regular expressions, and split at separators.

Regular expressions are those of Python's `re`, on strings as UTF-8: a part of a character is never
matched alone. A byte that is not UTF-8 counts as a character and comes out as it was.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.definition.inference import constant_value, no_flops
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, OpDef
from flowbook.graph.model.dtypes import string
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import reshape
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor
from flowbook.graph.ops.text.strings import mapped

__all__ = ["regex_full_match", "regex_replace", "split"]


def _characters(text: bytes) -> str:
    return text.decode(errors="surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


@lru_cache(maxsize=256)
def _compiled(pattern: bytes) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            # Of what looks like RE2's [[:alpha:]], which means something else here.
            warnings.simplefilter("error", FutureWarning)
            # Classes such as \d hold ASCII alone, as in RE2.
            return re.compile(_characters(pattern), re.ASCII)
    # A flag (?u) beside ASCII is a ValueError.
    except (re.error, ValueError, FutureWarning) as error:
        raise InvalidArgumentError(
            f"{pattern!r} is no regular expression: {error}",
            hint="patterns have the syntax of Python's re module",
        ) from None


@lru_cache(maxsize=256)
def _rewriting(rewrite: bytes, groups: int) -> Callable[[re.Match[str]], str]:
    r"""What replaces a match: only \0 to \9 and \\ are special, as in RE2."""
    parts: list[str | int] = []
    place = 0
    while place < len(rewrite):
        if rewrite[place] != 0x5C:
            end = rewrite.find(b"\\", place)
            end = len(rewrite) if end < 0 else end
            parts.append(_characters(rewrite[place:end]))
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
            parts.append("\\")
        else:
            raise InvalidArgumentError(
                f"the rewrite {rewrite!r} has a backslash before neither a digit nor another one"
            )
        place += 2

    def replace(match: re.Match[str]) -> str:
        return "".join(match[p] or "" if isinstance(p, int) else p for p in parts)

    return replace


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
    most = 0 if replace_global else 1
    return mapped(lambda text: _bytes(compiled.sub(replace, _characters(text), count=most)), input)


regex_replace_op = OpDef(
    "RegexReplace",
    "input: string, pattern: string, rewrite: string -> output: string",
    attributes={"replace_global": True},
    infer=_replaced_shape,
    kernel=_regex_replace,
    kinds=HOST,
    grad=NO_GRADIENT,
    aliases={},
    cost=no_flops,
)


@regex_replace_op.front
def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    r"""Strings with the matches of a regular expression replaced.

    Strings are taken as UTF-8, so that `.` is a character, while `\d`, `\s`, `\w` and `(?i)` know
    ASCII alone. Patterns have the syntax of Python's `re`, not that of RE2 as in TensorFlow: there
    are look-around and back-references, `$` stands before a last line end too, `\pN` and its like
    are missing, and some patterns take time that grows exponentially with the length of a string.

    Args:
        input: a string tensor.
        pattern: a string scalar.
        rewrite: a string scalar in which `\0` stands for the match, `\1` to `\9` for what its
            groups matched, and `\\` for a backslash.
        replace_global: replace all matches, or else the first.
        name: the operation's name.

    Raises:
        InvalidArgumentError: if the pattern or the rewrite is not valid; in the run, where it is
            known only then.
    """
    return regex_replace_op(input, pattern, rewrite, replace_global=bool(replace_global), name=name)


def _matched_shape(input: Tensor, pattern: Tensor) -> Shape:
    known = _known_text("pattern", pattern)
    if known is not None:
        _compiled(known)
    return input.shape


def _regex_full_match(xp: Any, input: Any, pattern: Any) -> Any:
    match = _compiled(_scalar_text("pattern", pattern)).fullmatch
    return mapped(lambda text: match(_characters(text)) is not None, input, dtype=np.bool_)


regex_full_match = OpDef(
    "RegexFullMatch",
    "input: string, pattern: string -> output: bool",
    infer=_matched_shape,
    kernel=_regex_full_match,
    kinds=HOST,
    grad=NO_GRADIENT,
    aliases={},
    cost=no_flops,
    doc="""Whether a regular expression matches strings from their beginnings to their ends.

    The pattern is a string scalar in the syntax of Python's `re`; see `regex_replace`.
    """,
)


def _split_shape(input: Tensor, sep: Tensor, maxsplit: int) -> list[Shape]:
    if input.shape.rank not in (None, 1):
        raise InvalidArgumentError(f"what to split is a vector, not of shape {input.shape}")
    _known_text("sep", sep)
    return [Shape((None, 2)), Shape((None,)), Shape((2,))]


def _split(xp: Any, input: Any, sep: Any, maxsplit: int) -> Any:
    if input.ndim != 1:
        raise InvalidArgumentError(f"what to split is a vector, not of shape {list(input.shape)}")
    # No separator means any white space, of which several in a row are one.
    between = _scalar_text("sep", sep) or None
    rows = [text.split(between, maxsplit) for text in input.tolist()]
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
    attributes={"maxsplit": -1},
    infer=_split_shape,
    kernel=_split,
    kinds=HOST,
    grad=NO_GRADIENT,
    aliases={},
    cost=no_flops,
)


@split_op.front
def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> SparseTensor:
    """Strings split at separators.

    Args:
        input: a string vector, or a single string.
        sep: a string scalar; None or "" splits at white space, of which several in a row are one
            and that at the ends counts for nothing.
        maxsplit: at how many separators at most; -1 splits at all.
        name: the name scope.

    Returns:
        The parts [strings, places], sparse: a row for each string.

    >>> import flowbook as fb
    >>> parts = fb.strings.split(["a b", "c"])
    >>> with fb.Session() as sess:
    ...     sess.run(parts.values)
    array([b'a', b'b', b'c'], dtype=object)
    """
    with name_scope(name or "StringSplit"):
        input = convert_to_tensor(input, string)
        if input.shape.rank == 0:
            input = reshape(input, [1])
        parts = split_op(input, "" if sep is None else sep, maxsplit=maxsplit)
    return SparseTensor(*parts)
