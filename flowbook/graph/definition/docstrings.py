"""What docstrings need not say each: what the argument `name` is."""

from __future__ import annotations

import re

# A section of arguments, up to the blank line or the end of the text after it.
_ARGUMENTS = re.compile(r"^( *)Args:\n(?:\1 +\S.*\n)+", re.MULTILINE)


def with_name(doc: str | None, meaning: str) -> str | None:
    """A docstring that says what `name` is, after the other arguments that it lists.

    Args:
        doc: the docstring. If it lists no arguments, or says itself what `name` is, it stays.
        meaning: what is said.
    """
    found = _ARGUMENTS.search(doc or "")
    if doc is None or found is None or re.search(r"^ *name: ", found[0], re.MULTILINE):
        return doc
    return f"{doc[: found.end()]}{found[1]}    name: {meaning}\n{doc[found.end() :]}"
