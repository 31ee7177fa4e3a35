"""What docstrings need not say each: arguments that mean the same in several functions.

A function of a family describes what it alone takes. `arguments_as` fills in the others, and
`with_name` what a name is, so that `help` and the documentation tell of all, and the source once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

Described = TypeVar("Described", bound=Callable[..., Any])

_HEADING = "Args:\n"
# How paragraphs begin that stand after the arguments; the last is that of examples.
_LATER = ("Returns:\n", "Raises:\n", "Source: ", ">" * 3)
# A section of arguments, up to the blank line or the end of the text after it.
_ARGUMENTS = re.compile(r"^( *)Args:\n(?:\1 +\S.*\n)+", re.MULTILINE)


def arguments_as(*others: Callable[..., Any]) -> Callable[[Described], Described]:
    """Have a docstring say of arguments that it leaves out what those of relatives say.

    Args:
        others: functions or classes; the first that describes an argument of the same name counts.

    Returns:
        A decorator of a function or class. Its docstring's arguments then stand in the order of the
        signature; those that nobody describes are left out. What `name` is, each says itself, or
        has `composed` say, which stands above.
    """

    def decorate(function: Described) -> Described:
        if function.__doc__ is None:  # Python was told to drop docstrings.
            return function
        paragraphs = inspect.cleandoc(function.__doc__).split("\n\n")
        known = _described(function.__doc__)
        for other in others:
            theirs = _described(other.__doc__ or "")
            known = {k: v for k, v in theirs.items() if k != "name"} | known
        names = [name for name in inspect.signature(function).parameters if name in known]
        arguments = _HEADING + "\n".join(known[name] for name in names)
        for place, paragraph in enumerate(paragraphs):
            if paragraph.startswith((_HEADING, *_LATER)):
                paragraphs[place : place + paragraph.startswith(_HEADING)] = [arguments]
                break
        else:
            paragraphs.append(arguments)
        function.__doc__ = "\n\n".join(paragraphs) + "\n"
        return function

    return decorate


def _described(text: str) -> dict[str, str]:
    """What a docstring says of each argument: its lines, as they stand."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    found = next((each for each in paragraphs if each.startswith(_HEADING)), "")
    items = re.split(r"\n(?=    \w)", found)[1:]
    return {item.partition(":")[0].strip(): item for item in items}


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
