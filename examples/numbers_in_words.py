"""Numbers in words and in digits: what `translation.py` learns to translate.

Multiples of 11 are held out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

TEXT = """
one two three four five six seven eight nine ten
eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
twenty thirty forty fifty sixty seventy eighty ninety
hundred thousand and
"""
# A word is known by its place; what is no word, which fills up a source, by 0.
WORDS = ["", *TEXT.split()]
# A digit is known by itself. `END` ends a translation, and fills up shorter ones.
END = 10
SYMBOLS = END + 1
# What the first digit follows; nobody writes it.
START = SYMBOLS


def in_words(number: int) -> list[str]:
    """How a number below a million is said; nothing for 0."""
    if number < 20:
        return [WORDS[number]] if number else []
    if number < 100:
        tens, rest = divmod(number, 10)
        return [WORDS[18 + tens], *in_words(rest)]
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    whole, rest = divmod(number, size)
    joint = ["and"] if 0 < rest < 100 else []
    return [*in_words(whole), name, *joint, *in_words(rest)]


def batch_of(numbers: Any) -> tuple[Any, Any]:
    """Numbers in words and in digits, [batch, longest] each, filled up with 0 and `END`."""
    sources = [[WORDS.index(word) for word in in_words(number)] for number in numbers]
    targets = [[*map(int, str(number)), END] for number in numbers]

    def filled(rows: list[list[int]], filling: int) -> Any:
        longest = max(map(len, rows))
        return np.array([row + [filling] * (longest - len(row)) for row in rows], np.int32)

    return filled(sources, 0), filled(targets, END)


def drawn(count: int, rng: np.random.Generator, is_held_out: bool) -> Any:
    """Numbers of up to six digits, as many of each length: multiples of 11 are held out."""
    if is_held_out:
        return 11 * rng.integers(1, 10 ** rng.integers(2, 7, count) // 11 + 1)
    numbers = rng.integers(1, 10 ** rng.integers(1, 7, count))
    return numbers - (numbers % 11 == 0)


def in_digits(symbols: Any) -> list[str]:
    """Translations [batch, steps] as text."""
    return ["".join(str(symbol) for symbol in row if symbol != END) for row in symbols]
