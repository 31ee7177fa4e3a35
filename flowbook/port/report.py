"""What has become of a program: its new text, and what is left to a person, by line."""

from __future__ import annotations

from typing import NamedTuple


class Left(NamedTuple):
    """What was not ported.

    Attributes:
        line: the line in the original, from 1.
        text: what it is, and what to do.
    """

    line: int
    text: str


class Ported(NamedTuple):
    """A program that has been ported.

    Attributes:
        text: the program.
        left: what is left to a person, in the order of the lines.
    """

    text: str
    left: list[Left]
