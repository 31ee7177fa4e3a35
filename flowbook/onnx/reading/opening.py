"""Models as they come: files, bytes or messages, checked before anything is built of them.

A model is not trusted. Its size is limited, onnx's checker sees it first, and tensors in other
files are read only below a folder that the caller names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from flowbook.graph.model.errors import (
    DataLossError,
    InvalidArgumentError,
    InvalidTypeError,
    NotFoundError,
    ResourceExhaustedError,
    UnimplementedError,
)
from flowbook.graph.storing.files import contents
from flowbook.onnx.package import onnx

# A protobuf message has at most 2 GiB.
MOST_BYTES = 2**31 - 1
MOST_NODES = 1_000_000
# Of all tensors in other files together.
MOST_EXTERNAL_BYTES = 2**36

# Reading follows the operator sets up to this one.
NEWEST_OPSET = 28


def opened(model: Any, base_folder: Any = None) -> Any:
    """The ModelProto of a path, bytes or a ModelProto, checked, with all data inside.

    Args:
        model: a path, bytes, or a ModelProto, which is not changed.
        base_folder: where tensors may lie that the model keeps in other files; None refuses them.

    Raises:
        InvalidTypeError: if it is none of these.
        NotFoundError: if there is no such file.
        DataLossError: if it is not a model.
        InvalidArgumentError: if the checker refuses it, or a path leads out of the folder.
        UnimplementedError: if it needs a newer operator set.
        ResourceExhaustedError: if it is too large.
    """
    message = _message(model)
    if len(message.graph.node) > MOST_NODES:
        raise ResourceExhaustedError(
            f"the model has {len(message.graph.node)} nodes, more than {MOST_NODES}"
        )
    newest = min(NEWEST_OPSET, onnx("defs").onnx_opset_version())
    for opset in message.opset_import:
        if opset.domain in ("", "ai.onnx") and opset.version > newest:
            raise UnimplementedError(
                f"the model uses operator set {opset.version}; the newest known is {newest}",
                hint="export it for an older one, or convert it with onnx.version_converter",
            )
    _bring_in(message, base_folder)
    checker = onnx("checker")
    try:
        checker.check_model(message.SerializeToString())
    except checker.ValidationError as error:
        raise InvalidArgumentError(f"the model is not valid ONNX: {_first_line(error)}") from None
    except Exception as error:
        # The checker's C++ code has errors of its own for what it cannot follow.
        raise InvalidArgumentError(f"the model cannot be checked: {_first_line(error)}") from None
    return message


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _message(model: Any) -> Any:
    proto = onnx().ModelProto
    if isinstance(model, proto):
        copy = proto()
        copy.CopyFrom(model)
        return copy
    if isinstance(model, str | os.PathLike):
        model = contents(Path(model), MOST_BYTES)
    if not isinstance(model, bytes | bytearray | memoryview):
        raise InvalidTypeError(
            f"a model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}"
        )
    if len(model) > MOST_BYTES:
        raise ResourceExhaustedError(f"{len(model)} bytes are more than a model has")
    message = proto()
    try:
        message.ParseFromString(bytes(model))
    except Exception:
        raise DataLossError("these bytes are not an ONNX model") from None
    if not message.HasField("graph"):
        raise DataLossError("these bytes are not an ONNX model: there is no graph in them")
    _check_texts(message)
    return message


def _check_texts(message: Any) -> None:
    """Refuse names that are no text, which protobuf hands out as bytes."""
    stack = [message]
    while stack:
        for field, found in stack.pop().ListFields():
            if field.type == field.TYPE_MESSAGE:
                stack.extend([found] if hasattr(found, "ListFields") else found)
            elif field.type == field.TYPE_STRING:
                for text in [found] if isinstance(found, str | bytes) else found:
                    if isinstance(text, bytes):
                        raise DataLossError(f"the model is damaged: {text[:40]!r} is no text")


def tensors_of(graph: Any) -> Iterator[Any]:
    """All tensors that a graph holds, those of its nodes' attributes and graphs included."""
    graphs = [graph]
    while graphs:
        current = graphs.pop()
        yield from getattr(current, "initializer", ())
        for sparse in getattr(current, "sparse_initializer", ()):
            yield sparse.values
            yield sparse.indices
        for node in current.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                if attribute.HasField("sparse_tensor"):
                    yield attribute.sparse_tensor.values
                    yield attribute.sparse_tensor.indices
                yield from attribute.tensors
                if attribute.HasField("g"):
                    graphs.append(attribute.g)
                graphs.extend(attribute.graphs)


def _bring_in(message: Any, base_folder: Any) -> None:
    """Read what lies in other files into the message."""
    external = onnx().TensorProto.EXTERNAL
    graphs = [message.graph, *message.functions]
    found = [t for g in graphs for t in tensors_of(g) if t.data_location == external]
    if not found:
        return
    if base_folder is None:
        raise InvalidArgumentError(
            f"the model keeps the data of {len(found)} tensors in other files, such as "
            f"{found[0].name!r}; no other file is read unless its folder is given",
            hint="load(model, base_folder=...)",
        )
    total = 0
    for tensor in found:
        data = _external_bytes(tensor, Path(base_folder), MOST_EXTERNAL_BYTES - total)
        total += len(data)
        del tensor.external_data[:]
        tensor.data_location = onnx().TensorProto.DEFAULT
        tensor.raw_data = data


def _external_bytes(tensor: Any, folder: Path, most: int) -> bytes:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = _inside(folder, entries.get("location", ""), tensor.name)
    try:
        offset = int(entries.get("offset", 0))
        size = path.stat().st_size
        length = int(entries.get("length", size - offset))
    except ValueError:
        raise InvalidArgumentError(f"the place of {tensor.name!r} is not a number") from None
    except OSError:
        raise NotFoundError(f"there is no file {str(path)!r}, of {tensor.name!r}") from None
    if offset < 0 or length < 0 or offset + length > size:
        raise InvalidArgumentError(
            f"the data of {tensor.name!r} would be {length} bytes from {offset} of {str(path)!r}, "
            f"which has {size}"
        )
    if length > most:
        raise ResourceExhaustedError(
            f"the model's tensors in other files are more than {MOST_EXTERNAL_BYTES} bytes"
        )
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


def _inside(folder: Path, location: str, name: str) -> Path:
    """A file below a folder, by a relative path without links."""
    parts = PurePosixPath(location).parts
    refused = (
        not parts
        or "\\" in location
        or "\0" in location
        or location.startswith("/")
        or ".." in parts
        or ":" in parts[0]
    )
    path = folder
    if not refused:
        for part in parts:
            path = path / part
            refused = refused or path.is_symlink()
        refused = refused or not path.resolve().is_relative_to(folder.resolve())
    if refused or (path.exists() and not path.is_file()):
        raise InvalidArgumentError(
            f"the data of {name!r} lie at {location!r}, which is not a plain file below the folder",
            hint="paths are relative, without .. and links",
        )
    return path
