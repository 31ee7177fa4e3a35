"""Numbers of things, in words."""

from __future__ import annotations


def counted(number: int, noun: str, nouns: str | None = None) -> str:
    """A number of things: "1 operation", "36,000 operations".

    Args:
        number: how many there are.
        noun: what one of them is called.
        nouns: what several are called, where that is not one with an s.
    """
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
