"""Progress of long work, as a bar: the one module that knows tqdm.

It comes with the extra `lab` and is imported on first use; without it nothing is
drawn. In a notebook the bar is a widget while the loop runs and a text afterwards, on a terminal a
line. Invariant: a bar whose loop was left, in whatever way, is closed when its cell has ended, and
its text says where it stopped.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from flowbook.exec.instruments.attached import watch
from flowbook.exec.plan.watching import Instrument, Tap
from flowbook.exec.report import in_seconds
from flowbook.exec.signature.fetches import flatten
from flowbook.exec.signature.signature import Signature
from flowbook.graph.building.graph import get_default_graph
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor
from flowbook.widgets.page import is_looked_at

__all__ = ["progress"]

Item = TypeVar("Item")

# More of a text would push the bar out of its line.
_LONGEST = 40

# Work of Flowbook's own that takes more seconds gets a bar.
_LONG = 1.0

_open: list[Progress[Any]] = []


class Progress(Generic[Item]):
    """A bar, and what it goes through; `fb.progress` makes it.

    Attributes:
        text: what it shows beside the bar.
    """

    def __init__(self, bar: Any, output: _Output | None, watched: Mapping[str, Tensor]) -> None:
        self._bar = bar
        self._output = output
        self._watched = watched
        self._unwatch: list[Callable[[], None]] = []
        self._going: Any = None
        self._values: dict[str, Any] = {}
        self._stays = bar.leave
        self._is_closed = False
        self._begun = time.monotonic()
        self._done_before = bar.n
        self._thread = threading.current_thread()
        self.text = ""

    def show(self, **values: Any) -> None:
        """Show values beside the bar, such as `loss=loss_value`; it is drawn a few times a second.

        Args:
            values: numbers, arrays of one element, or anything that Python prints.
        """
        self._values.update(values)
        self.text = ", ".join(f"{name}={_short(value)}" for name, value in self._values.items())
        self._bar.set_postfix_str(self.text, refresh=False)

    def __iter__(self) -> Iterator[Item]:
        by_graph: dict[Any, dict[str, Tensor]] = {}
        for name, tensor in self._watched.items():
            by_graph.setdefault(tensor.graph, {})[name] = tensor
        try:
            for graph, tensors in by_graph.items():
                self._unwatch.append(watch(graph, _Watch(tensors, self.show)))
            _open.append(self)
            self._begun = time.monotonic()
            self._going = iter(self._bar)
            yield from self._going
        finally:
            self.close()

    def __len__(self) -> int:
        return len(self._bar)

    def close(self) -> None:
        """Leave the bar as it is. May be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        if self in _open:
            _open.remove(self)
        while self._unwatch:
            self._unwatch.pop()()
        if self._going is not None:
            self._going.close()  # Only then does tqdm know how far it came.
        self._bar.close()
        if self._output is not None:
            # What is left of a full bar in the loop of another one is nothing.
            stays = self._stays or self._bar.n != self._bar.total
            self._output.end(f"{self!r} ({self._pace()})" if stays else "")

    def __enter__(self) -> Progress[Item]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """How far it is, without times: the same whenever the same was done."""
        bar = self._bar
        done, total = bar.n, bar.total
        far = f"{100 * done // total}%, {done}/{total}" if total else f"{done}"
        beginning = f"{bar.desc.removesuffix(': ')}: " if bar.desc else ""
        beside = f", {self.text}" if self.text else ""
        return f"{beginning}{far} {bar.unit}s{beside}"

    def _pace(self) -> str:
        """How long it took, as a whole and for each item."""
        seconds = time.monotonic() - self._begun
        done = self._bar.n - self._done_before
        each = f", {in_seconds(seconds / done)} per {self._bar.unit}" if done else ""
        return f"{in_seconds(seconds)}{each}"


def progress(
    items: Iterable[Item],
    total: int | None = None,
    description: str | None = None,
    unit: str = "step",
    disable: bool = False,
    **watched: Any,
) -> Progress[Item]:
    """Go through something while a bar shows how far, how fast, and how long it still takes.

    Where tqdm is not installed, it goes through it all the same, and draws no bar.

    Args:
        items: what to go through, such as `range(1000)`.
        total: how many items there are, where `len(items)` does not say.
        description: what stands before the bar.
        unit: what an item is called in the rate.
        disable: whether to draw nothing.
        watched: tensors by what they are called, such as `loss=loss`. Runs of the loop that compute
            them anyway have their values stand beside the bar: in all sessions that are open when
            the loop begins.

    Returns:
        An iterable that gives the items; its `show(loss=...)` shows a value that is no tensor's.

    Raises:
        InvalidTypeError: if what is watched is no tensor.

    >>> import flowbook as fb
    >>> W = fb.Variable(4.0)
    >>> loss = fb.square(W)
    >>> train = fb.train.GradientDescentOptimizer(0.25).minimize(loss)
    >>> sess = fb.Session()
    >>> for step in (bar := fb.progress(range(3), disable=True, loss=loss)):
    ...     sess.run(train)
    >>> bar.text
    'loss=1'
    """
    if not isinstance(items, Iterable):
        raise InvalidTypeError(f"progress goes through an iterable, not {items!r:.80}")
    tensors = {name: _tensor(name, item) for name, item in watched.items()}
    options: dict[str, Any] = {"desc": description, "unit": unit}
    # A bar in the loop of another one goes when it is full.
    options |= {"total": total, "leave": not _open}
    shell = _shell()
    in_notebook = not disable and getattr(shell, "kernel", None) is not None
    if not _is_drawn():
        return Progress(_Count(items, **options), _Output(None) if in_notebook else None, tensors)
    options["dynamic_ncols"] = True
    if not in_notebook:
        stream = io.StringIO() if disable else sys.stderr
        return Progress(_tqdm("std").tqdm(items, file=stream, **options), None, tensors)
    if not _shows_widgets(shell):
        # Nobody sees it grow: only how it ended is worth keeping.
        bar = _tqdm("std").tqdm(items, file=io.StringIO(), **options)
        return Progress(bar, _Output(None), tensors)
    return _as_widget(items, options, tensors)


def track_long(items: Collection[Item], what: str) -> Iterable[Item]:
    """The items of Flowbook's own work; a bar shows it in a notebook, should it take long."""
    return _with_late_bar(items, what) if _shows_widgets(_shell()) and _is_drawn() else items


def _with_late_bar(items: Collection[Item], what: str) -> Iterator[Item]:
    rest = iter(items)
    begun = time.monotonic()
    for done, item in enumerate(rest, 1):
        yield item
        if time.monotonic() - begun > _LONG:
            options = {"desc": what, "total": len(items), "initial": done, "unit": "operation"}
            # When it is over, nobody wants to know how long it took.
            options |= {"unit_scale": True, "leave": False, "dynamic_ncols": True}
            yield from _as_widget(rest, options, {})


def _is_drawn() -> bool:
    return importlib.util.find_spec("tqdm") is not None


def _shows_widgets(shell: Any) -> bool:
    return is_looked_at(shell) and importlib.util.find_spec("ipywidgets") is not None


def _as_widget(
    items: Iterable[Item], options: dict[str, Any], watched: Mapping[str, Tensor]
) -> Progress[Item]:
    bar = _tqdm("notebook").tqdm(items, display=False, **options)
    return Progress(bar, _Output(bar.container), watched)


def close_left() -> None:
    """Close the bars of loops that a cell left with an error or an interrupt: it has ended."""
    for bar in list(_open):
        if bar._thread is threading.current_thread():
            bar.close()


class _Count:
    """What stands in a bar's place where tqdm is not installed: it counts, and draws nothing."""

    def __init__(
        self, items: Iterable[Any], *, desc: str | None, unit: str, total: int | None, leave: bool
    ) -> None:
        self._items = items
        self.n = 0
        self.total = len(items) if total is None and isinstance(items, Sized) else total
        self.desc = desc
        self.unit = unit
        self.leave = leave

    def __iter__(self) -> Iterator[Any]:
        for item in self._items:
            yield item
            self.n += 1

    def __len__(self) -> int:
        if self.total is None:
            raise TypeError(f"{type(self._items).__name__} has no length, and no total was given")
        return self.total

    def set_postfix_str(self, text: str, refresh: bool) -> None:
        """Draw nothing."""

    def close(self) -> None:
        """Keep nothing open."""


class _Output:
    """A bar's place in the output of a cell.

    Args:
        container: the widget; None if there is none, and only the text of how it ended is shown.
    """

    def __init__(self, container: Any) -> None:
        from IPython.display import display

        self._container = container
        self._handle = display(container, display_id=True) if container is not None else None

    def end(self, text: str) -> None:
        """Put a text in the widget's place, which no page without a kernel could show."""
        from IPython.display import display

        forms = {"text/plain": text} if text else {}
        if self._handle is not None:
            self._handle.update(forms, raw=True)
            # ipywidgets keeps each widget, and what it is made of, until it is closed.
            for part in (*self._container.children, self._container):
                for name in ("layout", "style"):
                    if part.has_trait(name):
                        getattr(part, name).close()
                part.close()
        elif forms:
            display(forms, raw=True)


class _Watch(Instrument):
    """Takes the values of tensors from runs that compute them anyway.

    Args:
        tensors: by what they are called.
        show: is given the values.
    """

    def __init__(self, tensors: Mapping[str, Tensor], show: Callable[..., None]) -> None:
        self._watched = tensors
        self._show = show

    def tap(self, signature: Signature, operations: Sequence[Operation]) -> Sequence[Tap]:
        """What it takes from runs that compute some of the tensors, or are fed them."""
        needed = set(operations)
        found = {
            name: tensor
            for name, tensor in self._watched.items()
            if tensor.op in needed or tensor in signature.feeds
        }
        return [_Tap(found, self._show)] if found else []


class _Tap:
    """What is taken from the runs of one signature."""

    def __init__(self, found: Mapping[str, Tensor], show: Callable[..., None]) -> None:
        self.tensors: Sequence[Tensor] = tuple(found.values())
        self._names = tuple(found)
        self._show = show

    def begin(self) -> Callable[[Sequence[Any]], None]:
        """Every run is wanted: the last one's values stay when the loop ends."""
        return self._take

    def _take(self, values: Sequence[Any]) -> None:
        self._show(**dict(zip(self._names, values, strict=True)))


def _tensor(name: str, item: Any) -> Tensor:
    if isinstance(item, int | float | np.ndarray | np.generic):
        raise InvalidTypeError(
            f"{name} is a value, not a tensor: {item!r:.80}",
            hint=f"a value is shown by the bar's show({name}=...)",
        )
    [tensor] = flatten(getattr(item, "graph", None) or get_default_graph(), [item]).tensors
    return tensor


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _tqdm(module: str) -> Any:
    from tqdm.std import TqdmExperimentalWarning

    with warnings.catch_warnings():
        # It says that bars in notebooks are new.
        warnings.simplefilter("ignore", TqdmExperimentalWarning)
        return importlib.import_module(f"tqdm.{module}")


def _short(value: Any) -> str:
    """A value in a few characters, in one line."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(())[()]
    if isinstance(value, float | np.floating):
        return f"{float(value):.4g}"
    text = "".join(c if c.isprintable() else " " for c in str(value)[: _LONGEST + 1])
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
