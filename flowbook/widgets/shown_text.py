"""Text for pages: what comes from graphs stays text, whatever it contains."""

from html import escape

_LONGEST = 400  # Characters,
_LONGEST_NAME = 48  # and those of a name.


def shown_text(text: str) -> str:
    """Text for HTML and SVG: escaped, with a mark for each character that cannot be shown."""
    return escape(_printable(text))


def one_line(text: str, longest: int = _LONGEST_NAME) -> str:
    """Text of bounded length, with a mark for each character that cannot be shown."""
    shown = text if len(text) <= longest else f"{text[: longest // 2 - 1]}…{text[-longest // 2 :]}"
    return _printable(shown)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def coordinate(number: float) -> str:
    """A number of a picture, without a needless tail: "12.5", "3"."""
    return f"{number:.1f}".removesuffix(".0")


def bounded(text: str) -> str:
    """Text without its end where it is long; what is cut off is counted."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… ({len(text):,} characters)"
