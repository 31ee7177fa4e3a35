"""TensorBoard's event format: the one module that knows the `tensorboard` package.

It comes with the extra `tensorboard` and is imported on first use.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from flowbook.exec.instruments.summaries.event import Histogram, Image, Summary
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape

# TensorBoard shows attributes as text; a constant may hold a million numbers.
_LONGEST_ATTRIBUTE = 1000

_TYPES = {
    "float16": "HALF",
    "float32": "FLOAT",
    "float64": "DOUBLE",
}


@cache
def protocol() -> Any:
    """The messages of the format.

    Raises:
        UnimplementedError: if the package is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import google_crc32c  # noqa: F401  What records.py needs comes with the same extra.
            from tensorboard.compat.proto import (
                event_pb2,
                graph_pb2,
                summary_pb2,
                types_pb2,
            )
    except ImportError:
        raise UnimplementedError(
            "log directories are in TensorBoard's format, and tensorboard or google-crc32c is not "
            "installed",
            hint="pip install tensorboard google-crc32c",
        ) from None
    return SimpleNamespace(event=event_pb2, graph=graph_pb2, summary=summary_pb2, types=types_pb2)


def first_event(wall_time: float) -> bytes:
    """What a file begins with."""
    event = protocol().event.Event(wall_time=wall_time, file_version="brain.Event:2")
    event.source_metadata.writer = "flowbook"
    return event.SerializeToString()  # type: ignore[no-any-return]


def summary_event(summaries: Iterable[Summary]) -> bytes:
    """What one step gave."""
    event = protocol().event.Event()
    for summary in summaries:
        event.wall_time, event.step = summary.wall_time, summary.step
        # Python's texts may hold what UTF-8 cannot.
        value = event.summary.value.add(tag=summary.tag.encode(errors="replace").decode())
        _WRITERS[summary.kind](value, summary.value)
    return event.SerializeToString()  # type: ignore[no-any-return]


def _write_scalar(value: Any, number: float) -> None:
    value.simple_value = number


def _write_histogram(value: Any, histogram: Histogram) -> None:
    histo = value.histo
    histo.min, histo.max, histo.num = histogram.low, histogram.high, histogram.number
    histo.sum, histo.sum_squares = histogram.total, histogram.squares
    # A reader takes at least one bucket for granted.
    histo.bucket_limit.extend(histogram.limits or (0.0,))
    histo.bucket.extend(histogram.counts or (0.0,))


def _write_image(value: Any, image: Image) -> None:
    value.image.height, value.image.width = image.height, image.width
    value.image.colorspace = image.channels
    value.image.encoded_image_string = image.png


def _write_text(value: Any, texts: tuple[str, ...]) -> None:
    value.metadata.plugin_data.plugin_name = "text"
    value.tensor.dtype = protocol().types.DT_STRING
    value.tensor.tensor_shape.dim.add(size=len(texts))
    value.tensor.string_val.extend([text.encode(errors="replace") for text in texts])


_WRITERS: dict[str, Callable[[Any, Any], None]] = {
    "scalar": _write_scalar,
    "histogram": _write_histogram,
    "image": _write_image,
    "text": _write_text,
}


def read_summaries(data: bytes, run: str) -> Iterator[Summary]:
    """What an event says, as far as it is a summary.

    Raises:
        ValueError: if it is no event.
    """
    event = protocol().event.Event()
    try:
        event.ParseFromString(data)
    except Exception as error:  # protobuf's errors differ by its implementation.
        raise ValueError(f"a record is no event: {error}") from None
    for value in event.summary.value:
        found = _read(value)
        if found is not None:
            yield Summary(run, value.tag, found[0], event.step, event.wall_time, found[1])


def _read(value: Any) -> tuple[str, Any] | None:
    match value.WhichOneof("value"):
        case "simple_value":
            return "scalar", value.simple_value
        case "histo":
            histo = value.histo
            counts = histo.min, histo.max, histo.num, histo.sum, histo.sum_squares
            limits = tuple(histo.bucket_limit)
            return "histogram", Histogram(*counts, 0, limits, tuple(histo.bucket))
        case "image":
            image = value.image
            size = image.height, image.width, image.colorspace
            return "image", Image(*size, image.encoded_image_string)
        case "tensor":
            return _read_tensor(value.metadata.plugin_data.plugin_name, value.tensor)
    return None


def _read_tensor(plugin: str, tensor: Any) -> tuple[str, Any] | None:
    """What other writers put into tensors; only what can be shown."""
    if plugin == "text":
        return "text", tuple([text.decode(errors="replace") for text in tensor.string_val])
    if plugin == "scalars":
        from tensorboard.util.tensor_util import make_ndarray

        # A tensor of one number may claim to repeat it as often as it likes.
        if math.prod(dim.size for dim in tensor.tensor_shape.dim) != 1:
            return None
        try:
            return "scalar", float(make_ndarray(tensor).reshape(()))
        except TypeError as error:
            raise ValueError(f"a scalar is no number: {error}") from None
    return None


def graph_event(graph: Graph, wall_time: float) -> bytes:
    """The graph, for TensorBoard to draw."""
    messages = protocol()
    made = messages.graph.GraphDef()
    made.versions.producer = 1
    for operation in _with_what_they_need(graph.operations):
        node = made.node.add(name=operation.name, op=operation.type, device=operation.device)
        for tensor in operation.inputs:
            name = tensor.op.name
            node.input.append(f"{name}:{tensor.index}" if tensor.index else name)
        node.input.extend([f"^{other.name}" for other in operation.control_inputs])
        for tensor in operation.outputs:
            _write_shape(node.attr["_output_shapes"].list.shape.add(), tensor.shape)
        if operation.outputs:
            number = _type_number(messages, operation.outputs[0].dtype)
            if number is not None:
                node.attr["dtype"].type = number
        for key, value in operation.attributes.items():
            if key not in node.attr:
                node.attr[key].s = _described(value).encode(errors="replace")
        node.attr["defined_at"].s = str(operation.site).encode(errors="replace")
    data = made.SerializeToString()
    return messages.event.Event(  # type: ignore[no-any-return]
        wall_time=wall_time, graph_def=data
    ).SerializeToString()


def _with_what_they_need(operations: list[Operation]) -> list[Operation]:
    """The live operations, and retired ones that they still refer to."""
    found = dict.fromkeys(operations)
    stack = list(operations)
    while stack:
        operation = stack.pop()
        for other in (*(t.op for t in operation.inputs), *operation.control_inputs):
            if other not in found:
                found[other] = None
                stack.append(other)
    return sorted(found, key=lambda operation: operation.id)


def _write_shape(made: Any, shape: Shape) -> None:
    if shape.dims is None:
        made.unknown_rank = True
        return
    for size in shape.dims:
        made.dim.add(size=-1 if size is None else size)


def _type_number(messages: Any, dtype: DType) -> int | None:
    name = "DT_" + _TYPES.get(dtype.name, dtype.name.upper())
    found: int | None = messages.types.DataType.DESCRIPTOR.values_by_name.get(name)
    return None if found is None else found.number  # type: ignore[attr-defined]


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 100:
        return f"{value.dtype} {list(value.shape)}"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST_ATTRIBUTE else text[:_LONGEST_ATTRIBUTE] + "..."
