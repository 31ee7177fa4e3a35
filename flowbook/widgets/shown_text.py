"""Text for pages: what comes from graphs stays text, whatever it contains."""

from html import escape

_LONGEST = 400  # Characters.


def shown_text(text: str) -> str:
    """Text for HTML and SVG: escaped, with a mark for each character that cannot be shown."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def coordinate(number: float) -> str:
    """A number of a picture, without a needless tail: "12.5", "3"."""
    return f"{number:.1f}".removesuffix(".0")


def bounded(text: str) -> str:
    """Text without its end where it is long; what is cut off is counted."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… ({len(text):,} characters)"
