"""Functions over sequences and volumes, from those over images.

What moves windows over images does the same over sequences and volumes, and reads off its argument
`data_format` over how many axes. So one definition is enough, that for images: the others are it
under other names, with another default of `data_format` and other words in the text.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# Where the examples of a text begin; spelt so that here none does.
_EXAMPLE = ">" * 3

# What is said of images, and what of sequences and volumes.
_WORDS = {
    "images": ("sequences", "volumes"),
    "image": ("sequence", "volume"),
    "new height, new width": ("new width", "new depth, new height, new width"),
    "height, width": ("width", "depth, height, width"),
    "NHWC": ("NWC", "NDHWC"),
    "NCHW": ("NCW", "NCDHW"),
    "2d": ("1d", "3d"),
}


def over_sequences_and_volumes(over_images: Function) -> tuple[Function, Function]:
    """The functions that do over sequences, and over volumes, what one does over images.

    They are named as it is, with "1d" and "3d" in place of "2d", or at the end. Examples stay with
    the function over images.
    """
    return _derived(over_images, 0), _derived(over_images, 1)


def _derived(function: Any, which: int) -> Any:
    def said(text: str) -> str:
        for word, others in _WORDS.items():
            text = text.replace(word, others[which])
        return text

    name = function.__name__
    name = said(name if "2d" in name else f"{name}2d")
    code = function.__code__.replace(co_name=name, co_qualname=name)
    defaults = tuple(said(v) if isinstance(v, str) else v for v in function.__defaults__)
    derived = FunctionType(code, function.__globals__, name, defaults)
    derived.__annotations__ = function.__annotations__
    derived.__doc__ = said(function.__doc__.partition(_EXAMPLE)[0].rstrip())
    return derived
