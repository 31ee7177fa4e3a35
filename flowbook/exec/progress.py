"""Progress of long work, as a bar: the one module that knows tqdm.

It comes with `pip install 'flowbook[lab]'` and is imported on first use.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Generic, TypeVar

import numpy as np

from flowbook.graph import site as sites
from flowbook.graph.errors import InvalidTypeError, UnimplementedError

Item = TypeVar("Item")

# More of a text would push the bar out of its line.
_LONGEST = 40


class Progress(Generic[Item]):
    """A bar, and what it goes through; `fb.progress` makes it.

    Attributes:
        text: what it shows beside the bar.
    """

    def __init__(self, items: Iterable[Item], bar: Any) -> None:
        if not isinstance(items, Iterable):
            raise InvalidTypeError(f"progress goes through an iterable, not {items!r:.80}")
        self._bar = bar(items)
        self.text = ""
        author = sites.capture().author
        container = getattr(self._bar, "container", None)
        if author is not None and container is not None:
            author.own(_Widgets(container))

    def show(self, **values: Any) -> None:
        """Show values beside the bar, such as `loss=loss_value`; it is drawn a few times a second.

        Args:
            values: numbers, arrays of one element, or anything that Python prints.
        """
        self.text = ", ".join(f"{name}={_short(value)}" for name, value in values.items())
        self._bar.set_postfix_str(self.text, refresh=False)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._bar)

    def __len__(self) -> int:
        return len(self._bar)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()

    def __enter__(self) -> Progress[Item]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Widgets:
    """A bar's widgets in a notebook, which nobody sees any more when its cell runs again."""

    def __init__(self, container: Any) -> None:
        self._container = container
        # ipywidgets keeps a widget until it is closed: so long this is needed too.
        container.owned_as = self

    @property
    def closed(self) -> bool:
        """Whether the page has them no longer."""
        return self._container.comm is None

    def close(self) -> None:
        """Take them out of the page and out of the kernel."""
        for part in (*self._container.children, self._container):
            for name in ("layout", "style"):
                if part.has_trait(name):
                    getattr(part, name).close()
            part.close()


def progress(
    items: Iterable[Item],
    total: int | None = None,
    description: str | None = None,
    unit: str = "step",
    disable: bool = False,
) -> Progress[Item]:
    """Go through something while a bar shows how far, how fast, and what `show` was given last.

    In a notebook the bar is a widget, elsewhere a line on `sys.stderr`.

    Args:
        items: what to go through, such as `range(1000)`.
        total: how many items there are, where `len(items)` does not say.
        description: what stands before the bar.
        unit: what an item is called in the rate.
        disable: whether to draw nothing.

    Returns:
        An iterable that gives the items; its `show(loss=...)` says what stands beside the bar.

    Raises:
        UnimplementedError: if tqdm is not installed.

    >>> import flowbook as fb
    >>> for value in (bar := fb.progress([1.0, 2.0], disable=True)):
    ...     bar.show(loss=value / 3)
    >>> bar.text
    'loss=0.6667'
    """
    return Progress(
        items,
        partial(
            _tqdm(),
            total=total,
            desc=description,
            unit=unit,
            disable=disable,
            dynamic_ncols=True,
            file=sys.stderr,
        ),
    )


def _tqdm() -> Any:
    try:
        from tqdm.std import TqdmExperimentalWarning
    except ImportError:
        raise UnimplementedError(
            "bars are drawn by tqdm, which is not installed", hint="pip install 'flowbook[lab]'"
        ) from None
    with warnings.catch_warnings():
        # It says that bars in notebooks are new, and where ipywidgets is missing.
        warnings.simplefilter("ignore", TqdmExperimentalWarning)
        from tqdm.auto import tqdm
    return tqdm


def _short(value: Any) -> str:
    """A value in a few characters, in one line."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(())[()]
    if isinstance(value, float | np.floating):
        return f"{float(value):.4g}"
    text = "".join(c if c.isprintable() else " " for c in str(value)[: _LONGEST + 1])
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
