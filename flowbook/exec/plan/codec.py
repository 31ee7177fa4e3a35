"""Programs, and what became of their steps, as bytes: plain data, and nothing that could run.

A program that was decoded says what the one that was encoded says, its arrays bit for bit: the same
bytes come of both. `==` does not tell, as it has no answer where a program holds arrays. It runs in
a process that never saw its graph. Attributes that hold Python code, as those of `py_func` do, are
refused.

A checksum stands before each message: most of one whose bits have changed would still be read, as
another one.
"""

from __future__ import annotations

import struct
import zlib
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from flowbook.exec.plan.failure import Failure, LoopPlace, Summary
from flowbook.exec.plan.memory import Ownership
from flowbook.exec.plan.program import Block, Feed, Part, PlanNode, Program
from flowbook.exec.plan.program_pb2 import (
    BlockDef,
    ConstantDef,
    FailureDef,
    FeedDef,
    LoopPlaceDef,
    NodeDef,
    PartDef,
    ProgramDef,
    SummaryDef,
)
from flowbook.graph.model import errors
from flowbook.graph.model.errors import DataLossError, InternalError, OpError
from flowbook.graph.model.registry import key_here, shared_name
from flowbook.graph.model.resource_key import ResourceKey
from flowbook.graph.storing.stored_values import (
    ValueReader,
    ValueWriter,
    encodable,
    in_message,
    read_dtype,
    read_shape,
    write_shape,
)

VERSION = 1

_CHECKSUM = struct.Struct("<I")

M = TypeVar("M", bound=Message)


def encode(program: Program) -> bytes:
    """A program as bytes; the same for programs that say the same.

    Raises:
        UnimplementedError: if an attribute holds Python code.
        FailedPreconditionError: if a type has been defined again since an operation of it was
            built, which other processes could not know.
        ResourceExhaustedError: if its constants are too large for one message.
    """
    message, values = ProgramDef(version=VERSION), ValueWriter()
    for feed in program.feeds:
        written = message.feeds.add(
            name=encodable(feed.name), replaces_constant=feed.replaces_constant
        )
        written.spec.dtype = feed.dtype.name
        write_shape(feed.shape, written.spec.shape)
    for part, place in program.fetches:
        message.fetches.add(part=part, place=place)
    for each in program.parts:
        _write_part(each, message.parts.add(), values)
    message.arrays.extend(values.arrays.values())
    return _sealed(message)


def decode(data: bytes) -> Program:
    """The program that `encode` wrote.

    Raises:
        DataLossError: if the bytes are damaged, or are not a program of this version.
    """
    message = _opened(data, ProgramDef(), "program")
    if message.version != VERSION:
        raise DataLossError(
            f"the program is in format {message.version}; this Flowbook reads format {VERSION}",
            hint="install the same Flowbook at both ends",
        )
    values = ValueReader(map(in_message, message.arrays))
    return Program(
        tuple([_read_feed(feed) for feed in message.feeds]),
        tuple([(fetch.part, fetch.place) for fetch in message.fetches]),
        tuple([_read_part(part, values) for part in message.parts]),
    )


def _sealed(message: Message) -> bytes:
    """A message as bytes, their checksum before them."""
    body = message.SerializeToString(deterministic=True)
    return _CHECKSUM.pack(zlib.crc32(body)) + body


def _opened(data: bytes, message: M, name: str) -> M:
    """A message, filled with what `_sealed` made of one; errors call it by a name."""
    body = data[_CHECKSUM.size :]
    if data[: _CHECKSUM.size] != _CHECKSUM.pack(zlib.crc32(body)):
        raise DataLossError(f"these {len(data)} bytes are not a whole {name}: the checksum differs")
    try:
        message.ParseFromString(body)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataLossError(f"these {len(data)} bytes are not a {name}: {error}") from None
    return message


def _read_feed(message: FeedDef) -> Feed:
    spec = message.spec
    dtype, shape = read_dtype(spec.dtype), read_shape(spec.shape)
    return Feed(message.name, dtype, shape, message.replaces_constant)


def _write_part(part: Part, message: PartDef, values: ValueWriter) -> None:
    message.device = part.device
    message.feeds.extend(part.feeds)
    message.values = part.values
    _write_block(part.block, message.block, values)
    message.fetches.extend(part.fetches)
    message.ownership.extend([ownership.name for ownership in part.ownership])
    message.targets.extend(part.targets)
    message.on_host.extend(part.on_host)
    message.is_timed = part.is_timed
    for value, constant in part.constants.items():
        message.constants.append(ConstantDef(value=value, array=values.write_array(constant)))


def _read_part(message: PartDef, values: ValueReader) -> Part:
    return Part(
        message.device,
        tuple(message.feeds),
        message.values,
        _read_block(message.block, values),
        tuple(message.fetches),
        tuple([_ownership(name) for name in message.ownership]),
        tuple(message.targets),
        {constant.value: values.array(constant.array) for constant in message.constants},
        tuple(message.on_host),
        message.is_timed,
    )


def _ownership(name: str) -> Ownership:
    if name not in Ownership.__members__:
        raise DataLossError(f"{name!r} is no ownership")
    return Ownership[name]


def _write_block(block: Block, message: BlockDef, values: ValueWriter) -> None:
    for node in block.nodes:
        _write_node(node, message.nodes.add(), values)
    for inner in block.blocks:
        _write_block(inner, message.blocks.add(), values)
    message.frame = encodable(block.frame)
    message.parallel_iterations = block.parallel_iterations


def _read_block(message: BlockDef, values: ValueReader) -> Block:
    return Block(
        tuple([_read_node(node, values) for node in message.nodes]),
        tuple([_read_block(block, values) for block in message.blocks]),
        message.frame,
        message.parallel_iterations,
    )


def _write_node(node: PlanNode, message: NodeDef, values: ValueWriter) -> None:
    message.type = shared_name(node.type)
    message.inputs.extend(node.inputs)
    message.outputs.extend(node.outputs)
    message.after.extend(node.after)
    for name, value in node.attributes.items():
        attribute = message.attributes.add(name=name)
        try:
            values.write(value, attribute.value)
        except OpError as error:
            error.message = f"{node.name!r}: attribute {name!r}: {error.message}"
            raise
    for dtype, shape in zip(node.dtypes, node.shapes, strict=True):
        write_shape(shape, message.specs.add(dtype=dtype.name).shape)
    if node.key is not None:
        message.key.container = encodable(node.key.container)
        message.key.name = encodable(node.key.name)
        message.key.generation = node.key.generation
    message.name = encodable(node.name)
    message.sources.extend(node.sources)
    message.behind.extend(node.behind)


def _read_node(message: NodeDef, values: ValueReader) -> PlanNode:
    key = message.key
    return PlanNode(
        tuple(message.inputs),
        tuple(message.outputs),
        tuple(message.after),
        key_here(message.type),
        {attribute.name: values.read(attribute.value) for attribute in message.attributes},
        tuple([read_dtype(spec.dtype) for spec in message.specs]),
        tuple([read_shape(spec.shape) for spec in message.specs]),
        ResourceKey(key.container, key.name, key.generation) if message.HasField("key") else None,
        message.name,
        tuple(message.sources),
        tuple(message.behind),
    )


def encode_failure(failure: Failure) -> bytes:
    """A failure as bytes."""
    error = failure.error
    message = FailureDef(
        error=type(error).__name__,
        message=encodable(error.message),
        hint=encodable(error.hint or ""),
        error_details=map(encodable, error.details),
        node=failure.node,
        inputs=[
            SummaryDef(is_there=True, text=encodable(s.text), note=encodable(s.note))
            if s is not None
            else SummaryDef()
            for s in failure.inputs
        ],
        details=map(encodable, failure.details),
        loops=[LoopPlaceDef(frame=encodable(f), iteration=i) for f, i in failure.loops],
        part=failure.part,
    )
    return _sealed(message)


def decode_failure(data: bytes) -> Failure:
    """The failure that `encode_failure` wrote, with an error of the same class.

    Raises:
        DataLossError: if the bytes are damaged.
    """
    message = _opened(data, FailureDef(), "failure")
    kind = getattr(errors, message.error, None) if message.error in errors.__all__ else None
    if not (isinstance(kind, type) and issubclass(kind, OpError)):
        kind = InternalError
    found = kind(message.message, hint=message.hint or None)
    found.details += message.error_details
    inputs = [Summary(s.text, s.note) if s.is_there else None for s in message.inputs]
    loops = tuple([LoopPlace(place.frame, place.iteration) for place in message.loops])
    return Failure(found, message.node, tuple(inputs), tuple(message.details), loops, message.part)
