"""Graphs as they come: files, bytes or messages, checked before anything is built of them.

Nothing is trusted: sizes are limited, and what is no such message is refused.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from flowbook.graph.model.errors import (
    DataLossError,
    InvalidTypeError,
    NotFoundError,
    ResourceExhaustedError,
)
from flowbook.graph.storing.files import contents
from flowbook.tensorflow.messages_pb2 import GraphDef, MetaGraphDef, SavedModel

# A protobuf message has at most 2 GiB.
MOST_BYTES = 2**31 - 1
MOST_NODES = 1_000_000

# What the beginning of a text of each kind may be.
_TEXTS = ("node", "meta_info_def", "graph_def", "versions", "library", "saved_model_schema_version")


def opened(model: Any, tags: Any = None) -> MetaGraphDef:
    """The MetaGraphDef of a path, bytes or a message; one around a GraphDef alone.

    Args:
        model: a path to a GraphDef (".pb"), a MetaGraphDef (".meta"), a saved model or its folder,
            or to their text forms; the bytes of one; or a message of one of these types, which may
            be TensorFlow's own.
        tags: which MetaGraph of a saved model: the one that has exactly these tags; by default the
            only one.

    Raises:
        InvalidTypeError: if it is none of these.
        NotFoundError: if there is no such file, or MetaGraph.
        DataLossError: if it is no graph.
        ResourceExhaustedError: if it is too large.
    """
    message: Any = _message(model)
    if isinstance(message, SavedModel):
        message = _chosen(message, tags)
    if isinstance(message, GraphDef):
        message = MetaGraphDef(graph_def=message)
    if len(message.graph_def.node) > MOST_NODES:
        raise ResourceExhaustedError(
            f"the graph has {len(message.graph_def.node)} nodes, more than {MOST_NODES}"
        )
    return message  # type: ignore[no-any-return]


def folder_of(path: str | os.PathLike[str]) -> Path:
    """The folder of a saved model, or that in which a file is."""
    return Path(path) if Path(path).is_dir() else Path(path).parent


def checkpoint_beside(path: str | os.PathLike[str]) -> str | None:
    """The V2 checkpoint that belongs to a MetaGraph's file, or to a saved model; None if none."""
    file, folder = Path(path), folder_of(path)
    found = [folder / "variables" / "variables"]
    if ".meta" in file.name:
        found.insert(0, file.with_name(file.name.partition(".meta")[0]))
    there = (each for each in found if each.with_name(f"{each.name}.index").exists())
    return next(map(str, there), None)


def _chosen(model: SavedModel, tags: Any) -> MetaGraphDef:
    """One of a saved model's MetaGraphs."""
    having = {frozenset(each.meta_info_def.tags): each for each in model.meta_graphs}
    if tags is None and len(having) == 1:
        return next(iter(having.values()))
    wanted = frozenset([tags] if isinstance(tags, str) else tags or ())
    if wanted not in having:
        listed = "; ".join(sorted(str(sorted(each)) for each in having))
        raise NotFoundError(
            f"the saved model has no MetaGraph of the tags {sorted(wanted)}; it has {listed}",
            hint="load(model, tags=[...])",
        )
    return having[wanted]


def _message(model: Any) -> Any:
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        if path.is_dir():
            found = [path / f"saved_model.{end}" for end in ("pb", "pbtxt")]
            path = next((each for each in found if each.exists()), found[0])
        return _parsed(contents(path, MOST_BYTES), path.name)
    if isinstance(model, bytes | bytearray | memoryview):
        return _parsed(bytes(model), "")
    if isinstance(model, Message):
        return _parsed(model.SerializeToString(), model.DESCRIPTOR.name)
    raise InvalidTypeError(
        f"a graph is a path, bytes or a GraphDef, not {type(model).__name__}",
    )


def _parsed(data: bytes, name: str) -> Any:
    """The message that bytes hold, in binary or as text."""
    if len(data) > MOST_BYTES:
        raise ResourceExhaustedError(f"{len(data)} bytes are more than a graph has")
    kinds: list[Any] = [GraphDef, MetaGraphDef, SavedModel]
    kinds.sort(key=lambda kind: not _is_called_after(kind, name))
    parsers = [_from_binary]
    if data.lstrip().startswith(tuple(text.encode() for text in _TEXTS)):
        parsers.insert(0, _from_text)
    for parse in parsers:
        for kind in kinds:
            found = parse(data, kind)
            if found is not None:
                return found
    raise DataLossError("these bytes are not a GraphDef, MetaGraphDef or SavedModel of TensorFlow")


def _is_called_after(kind: Any, name: str) -> bool:
    """Whether a file, or a type of messages, is called as one of this kind is."""
    if kind is SavedModel:
        return name.startswith(("saved_model", "SavedModel"))
    return kind is MetaGraphDef and (name == "MetaGraphDef" or ".meta" in name)


def _from_binary(data: bytes, kind: Any) -> Any:
    message = kind()
    try:
        message.ParseFromString(data)
    except (DecodeError, ValueError):
        return None
    return message if _holds_a_graph(message) else None


def _from_text(data: bytes, kind: Any) -> Any:
    message = kind()
    try:
        text_format.Parse(data, message, allow_unknown_field=True)
    except (text_format.ParseError, UnicodeDecodeError, RecursionError):
        return None
    return message if _holds_a_graph(message) else None


def _holds_a_graph(message: Any) -> bool:
    """Whether there are nodes in it: bytes of one kind may be read as another, and say nothing."""
    if isinstance(message, SavedModel):
        return any(_holds_a_graph(each) for each in message.meta_graphs)
    graph = message.graph_def if isinstance(message, MetaGraphDef) else message
    return bool(graph.node) and all(node.name and node.op for node in graph.node)
