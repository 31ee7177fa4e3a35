from flowbook.graph.storing import graph_pb2 as _graph_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProgramDef(_message.Message):
    __slots__ = ("version", "feeds", "fetches", "parts", "arrays")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    FETCHES_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    version: int
    feeds: _containers.RepeatedCompositeFieldContainer[FeedDef]
    fetches: _containers.RepeatedCompositeFieldContainer[FetchDef]
    parts: _containers.RepeatedCompositeFieldContainer[PartDef]
    arrays: _containers.RepeatedCompositeFieldContainer[_graph_pb2.ArrayDef]
    def __init__(self, version: _Optional[int] = ..., feeds: _Optional[_Iterable[_Union[FeedDef, _Mapping]]] = ..., fetches: _Optional[_Iterable[_Union[FetchDef, _Mapping]]] = ..., parts: _Optional[_Iterable[_Union[PartDef, _Mapping]]] = ..., arrays: _Optional[_Iterable[_Union[_graph_pb2.ArrayDef, _Mapping]]] = ...) -> None: ...

class FeedDef(_message.Message):
    __slots__ = ("name", "spec", "replaces_constant")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    REPLACES_CONSTANT_FIELD_NUMBER: _ClassVar[int]
    name: str
    spec: _graph_pb2.OutputDef
    replaces_constant: bool
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[_graph_pb2.OutputDef, _Mapping]] = ..., replaces_constant: bool = ...) -> None: ...

class FetchDef(_message.Message):
    __slots__ = ("part", "place")
    PART_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    part: int
    place: int
    def __init__(self, part: _Optional[int] = ..., place: _Optional[int] = ...) -> None: ...

class PartDef(_message.Message):
    __slots__ = ("device", "feeds", "values", "block", "fetches", "ownership", "targets", "constants", "on_host", "is_timed")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    FETCHES_FIELD_NUMBER: _ClassVar[int]
    OWNERSHIP_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    CONSTANTS_FIELD_NUMBER: _ClassVar[int]
    ON_HOST_FIELD_NUMBER: _ClassVar[int]
    IS_TIMED_FIELD_NUMBER: _ClassVar[int]
    device: str
    feeds: _containers.RepeatedScalarFieldContainer[int]
    values: int
    block: BlockDef
    fetches: _containers.RepeatedScalarFieldContainer[int]
    ownership: _containers.RepeatedScalarFieldContainer[str]
    targets: _containers.RepeatedScalarFieldContainer[int]
    constants: _containers.RepeatedCompositeFieldContainer[ConstantDef]
    on_host: _containers.RepeatedScalarFieldContainer[int]
    is_timed: bool
    def __init__(self, device: _Optional[str] = ..., feeds: _Optional[_Iterable[int]] = ..., values: _Optional[int] = ..., block: _Optional[_Union[BlockDef, _Mapping]] = ..., fetches: _Optional[_Iterable[int]] = ..., ownership: _Optional[_Iterable[str]] = ..., targets: _Optional[_Iterable[int]] = ..., constants: _Optional[_Iterable[_Union[ConstantDef, _Mapping]]] = ..., on_host: _Optional[_Iterable[int]] = ..., is_timed: bool = ...) -> None: ...

class ConstantDef(_message.Message):
    __slots__ = ("value", "array")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    value: int
    array: bytes
    def __init__(self, value: _Optional[int] = ..., array: _Optional[bytes] = ...) -> None: ...

class BlockDef(_message.Message):
    __slots__ = ("nodes", "blocks", "frame", "parallel_iterations")
    NODES_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    PARALLEL_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeDef]
    blocks: _containers.RepeatedCompositeFieldContainer[BlockDef]
    frame: str
    parallel_iterations: int
    def __init__(self, nodes: _Optional[_Iterable[_Union[NodeDef, _Mapping]]] = ..., blocks: _Optional[_Iterable[_Union[BlockDef, _Mapping]]] = ..., frame: _Optional[str] = ..., parallel_iterations: _Optional[int] = ...) -> None: ...

class NodeDef(_message.Message):
    __slots__ = ("type", "inputs", "outputs", "after", "attributes", "specs", "key", "name", "sources", "behind")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    SPECS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    BEHIND_FIELD_NUMBER: _ClassVar[int]
    type: str
    inputs: _containers.RepeatedScalarFieldContainer[int]
    outputs: _containers.RepeatedScalarFieldContainer[int]
    after: _containers.RepeatedScalarFieldContainer[int]
    attributes: _containers.RepeatedCompositeFieldContainer[_graph_pb2.Attribute]
    specs: _containers.RepeatedCompositeFieldContainer[_graph_pb2.OutputDef]
    key: KeyDef
    name: str
    sources: _containers.RepeatedScalarFieldContainer[int]
    behind: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, type: _Optional[str] = ..., inputs: _Optional[_Iterable[int]] = ..., outputs: _Optional[_Iterable[int]] = ..., after: _Optional[_Iterable[int]] = ..., attributes: _Optional[_Iterable[_Union[_graph_pb2.Attribute, _Mapping]]] = ..., specs: _Optional[_Iterable[_Union[_graph_pb2.OutputDef, _Mapping]]] = ..., key: _Optional[_Union[KeyDef, _Mapping]] = ..., name: _Optional[str] = ..., sources: _Optional[_Iterable[int]] = ..., behind: _Optional[_Iterable[int]] = ...) -> None: ...

class KeyDef(_message.Message):
    __slots__ = ("container", "name", "generation")
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    container: str
    name: str
    generation: int
    def __init__(self, container: _Optional[str] = ..., name: _Optional[str] = ..., generation: _Optional[int] = ...) -> None: ...

class FailureDef(_message.Message):
    __slots__ = ("error", "message", "hint", "error_details", "node", "inputs", "details", "loops", "part")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    ERROR_DETAILS_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    LOOPS_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    error: str
    message: str
    hint: str
    error_details: _containers.RepeatedScalarFieldContainer[str]
    node: int
    inputs: _containers.RepeatedCompositeFieldContainer[SummaryDef]
    details: _containers.RepeatedScalarFieldContainer[str]
    loops: _containers.RepeatedCompositeFieldContainer[LoopPlaceDef]
    part: int
    def __init__(self, error: _Optional[str] = ..., message: _Optional[str] = ..., hint: _Optional[str] = ..., error_details: _Optional[_Iterable[str]] = ..., node: _Optional[int] = ..., inputs: _Optional[_Iterable[_Union[SummaryDef, _Mapping]]] = ..., details: _Optional[_Iterable[str]] = ..., loops: _Optional[_Iterable[_Union[LoopPlaceDef, _Mapping]]] = ..., part: _Optional[int] = ...) -> None: ...

class LoopPlaceDef(_message.Message):
    __slots__ = ("frame", "iteration")
    FRAME_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    frame: str
    iteration: int
    def __init__(self, frame: _Optional[str] = ..., iteration: _Optional[int] = ...) -> None: ...

class SummaryDef(_message.Message):
    __slots__ = ("is_there", "text", "note")
    IS_THERE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    is_there: bool
    text: str
    note: str
    def __init__(self, is_there: bool = ..., text: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...
