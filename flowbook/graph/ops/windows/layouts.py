"""In which order data has its axes: the channels last, or first after the batch.

Operations that move windows have the channels last. Data that has them first is transposed on the
way in and out, which copies nothing by itself: between two such operations it amounts to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flowbook.graph.building.scopes import name_scope
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.gathering import gather
from flowbook.graph.ops.basis.permuting import transpose
from flowbook.graph.ops.basis.shaping import shape_argument


@dataclass(frozen=True)
class Layout:
    """One order of axes.

    Attributes:
        count: how many axes there are between batch and channels, or after both.
        is_channels_first: whether data is [batch, channels, ...], and not [batch, ..., channels].
    """

    count: int
    is_channels_first: bool = False

    @property
    def channels_axis(self) -> int:
        """The axis of the channels."""
        return 1 if self.is_channels_first else -1

    @property
    def _order(self) -> list[int]:
        """Which axis of the data each of those with the channels last is."""
        return [0, *range(2, self.count + 2), 1]

    def listed(self, value: Any) -> Any:
        """An argument as where the channels are last: one entry for each axis changes places."""
        if not self.is_channels_first or not isinstance(value, Sequence) or isinstance(value, str):
            return value
        return [value[axis] for axis in self._order] if len(value) == self.count + 2 else value

    def sizes(self, shape: Any) -> Any:
        """A shape of such data, ints or a vector tensor, as where the channels are last."""
        given = shape_argument(shape)
        return gather(given, self._order) if self.is_channels_first else given

    def channels_last(self, data: Any) -> Any:
        """The data with its channels last."""
        return transpose(data, self._order) if self.is_channels_first else data

    def restored(self, result: Tensor, name: str | None = None) -> Tensor:
        """Data with the channels last in this layout again."""
        order = [0, self.count + 1, *range(1, self.count + 1)]
        return transpose(result, order, name=name) if self.is_channels_first else result

    def through(self, build: Callable[[Any, str | None], Tensor], data: Any, name: str) -> Tensor:
        """What `build(data, name)` makes of data with the channels last, in this layout."""
        if not self.is_channels_first:
            return build(data, name)
        with name_scope(name) as scope:
            return self.restored(build(self.channels_last(data), None), scope)


_LAYOUTS = {
    "NWC": Layout(1),
    "NCW": Layout(1, True),
    "NHWC": Layout(2),
    "NCHW": Layout(2, True),
    "NDHWC": Layout(3),
    "NCDHW": Layout(3, True),
}
_ELSEWHERE = {"channels_last": "NHWC", "channels_first": "NCHW"}


def layout_of(data_format: Any, count: int | None = None) -> Layout:
    """The layout of a data format, which says too how many axes windows move over.

    Args:
        data_format: "N" is the batch, "C" the channels, such as "NHWC"; None is channels last, if
            the count is given.
        count: how many axes windows move over, where that is known.

    Raises:
        InvalidArgumentError: if it is no format of that many axes.
    """
    if data_format is None and count is not None:
        return Layout(count)
    found = _LAYOUTS.get(data_format) if isinstance(data_format, str) else None
    if found is None or count not in (None, found.count):
        names = [n for n, known in _LAYOUTS.items() if count in (None, known.count)]
        other = _ELSEWHERE.get(data_format) if isinstance(data_format, str) else None
        raise InvalidArgumentError(
            f"data_format is {' or '.join(map(repr, names)) or None}, not {data_format!r}",
            hint=f"of images it is {other!r}" if other else None,
        )
    return found
