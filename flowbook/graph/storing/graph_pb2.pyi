from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GraphDef(_message.Message):
    __slots__ = ("version", "seed", "operations", "arrays", "sites", "scopes", "unfeedable", "constrained", "complete")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    SITES_FIELD_NUMBER: _ClassVar[int]
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    UNFEEDABLE_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINED_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    version: Version
    seed: Value
    operations: _containers.RepeatedCompositeFieldContainer[OperationDef]
    arrays: _containers.RepeatedCompositeFieldContainer[ArrayDef]
    sites: _containers.RepeatedCompositeFieldContainer[SiteDef]
    scopes: _containers.RepeatedScalarFieldContainer[str]
    unfeedable: _containers.RepeatedCompositeFieldContainer[TensorRef]
    constrained: _containers.RepeatedScalarFieldContainer[int]
    complete: bool
    def __init__(self, version: _Optional[_Union[Version, _Mapping]] = ..., seed: _Optional[_Union[Value, _Mapping]] = ..., operations: _Optional[_Iterable[_Union[OperationDef, _Mapping]]] = ..., arrays: _Optional[_Iterable[_Union[ArrayDef, _Mapping]]] = ..., sites: _Optional[_Iterable[_Union[SiteDef, _Mapping]]] = ..., scopes: _Optional[_Iterable[str]] = ..., unfeedable: _Optional[_Iterable[_Union[TensorRef, _Mapping]]] = ..., constrained: _Optional[_Iterable[int]] = ..., complete: bool = ...) -> None: ...

class Version(_message.Message):
    __slots__ = ("writer", "min_reader")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    MIN_READER_FIELD_NUMBER: _ClassVar[int]
    writer: int
    min_reader: int
    def __init__(self, writer: _Optional[int] = ..., min_reader: _Optional[int] = ...) -> None: ...

class OperationDef(_message.Message):
    __slots__ = ("name", "type", "inputs", "control_inputs", "attributes", "outputs", "device", "colocation", "container", "site", "retired", "settled_by", "closes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    CONTROL_INPUTS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    COLOCATION_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    SITE_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    SETTLED_BY_FIELD_NUMBER: _ClassVar[int]
    CLOSES_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    inputs: _containers.RepeatedCompositeFieldContainer[TensorRef]
    control_inputs: _containers.RepeatedScalarFieldContainer[int]
    attributes: _containers.RepeatedCompositeFieldContainer[Attribute]
    outputs: _containers.RepeatedCompositeFieldContainer[OutputDef]
    device: str
    colocation: _containers.RepeatedScalarFieldContainer[int]
    container: str
    site: int
    retired: bool
    settled_by: _containers.RepeatedCompositeFieldContainer[TensorRef]
    closes: int
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., inputs: _Optional[_Iterable[_Union[TensorRef, _Mapping]]] = ..., control_inputs: _Optional[_Iterable[int]] = ..., attributes: _Optional[_Iterable[_Union[Attribute, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[OutputDef, _Mapping]]] = ..., device: _Optional[str] = ..., colocation: _Optional[_Iterable[int]] = ..., container: _Optional[str] = ..., site: _Optional[int] = ..., retired: bool = ..., settled_by: _Optional[_Iterable[_Union[TensorRef, _Mapping]]] = ..., closes: _Optional[int] = ...) -> None: ...

class TensorRef(_message.Message):
    __slots__ = ("operation", "port")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    operation: int
    port: int
    def __init__(self, operation: _Optional[int] = ..., port: _Optional[int] = ...) -> None: ...

class OutputDef(_message.Message):
    __slots__ = ("dtype", "shape")
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    dtype: str
    shape: ShapeDef
    def __init__(self, dtype: _Optional[str] = ..., shape: _Optional[_Union[ShapeDef, _Mapping]] = ...) -> None: ...

class ShapeDef(_message.Message):
    __slots__ = ("has_rank", "dims")
    HAS_RANK_FIELD_NUMBER: _ClassVar[int]
    DIMS_FIELD_NUMBER: _ClassVar[int]
    has_rank: bool
    dims: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, has_rank: bool = ..., dims: _Optional[_Iterable[int]] = ...) -> None: ...

class Attribute(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: Value
    def __init__(self, name: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("none", "boolean", "integer", "big_integer", "real", "complex", "text", "data", "dtype", "shape", "array", "scalar", "tuple")
    NONE_FIELD_NUMBER: _ClassVar[int]
    BOOLEAN_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    BIG_INTEGER_FIELD_NUMBER: _ClassVar[int]
    REAL_FIELD_NUMBER: _ClassVar[int]
    COMPLEX_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    SCALAR_FIELD_NUMBER: _ClassVar[int]
    TUPLE_FIELD_NUMBER: _ClassVar[int]
    none: bool
    boolean: bool
    integer: int
    big_integer: bytes
    real: float
    complex: Complex
    text: str
    data: bytes
    dtype: str
    shape: ShapeDef
    array: bytes
    scalar: bytes
    tuple: Tuple
    def __init__(self, none: bool = ..., boolean: bool = ..., integer: _Optional[int] = ..., big_integer: _Optional[bytes] = ..., real: _Optional[float] = ..., complex: _Optional[_Union[Complex, _Mapping]] = ..., text: _Optional[str] = ..., data: _Optional[bytes] = ..., dtype: _Optional[str] = ..., shape: _Optional[_Union[ShapeDef, _Mapping]] = ..., array: _Optional[bytes] = ..., scalar: _Optional[bytes] = ..., tuple: _Optional[_Union[Tuple, _Mapping]] = ...) -> None: ...

class Complex(_message.Message):
    __slots__ = ("real", "imaginary")
    REAL_FIELD_NUMBER: _ClassVar[int]
    IMAGINARY_FIELD_NUMBER: _ClassVar[int]
    real: float
    imaginary: float
    def __init__(self, real: _Optional[float] = ..., imaginary: _Optional[float] = ...) -> None: ...

class Tuple(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, items: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...

class ArrayDef(_message.Message):
    __slots__ = ("digest", "dtype", "dims", "data", "strings")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    DIMS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    digest: bytes
    dtype: str
    dims: _containers.RepeatedScalarFieldContainer[int]
    data: bytes
    strings: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, digest: _Optional[bytes] = ..., dtype: _Optional[str] = ..., dims: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ..., strings: _Optional[_Iterable[bytes]] = ...) -> None: ...

class SiteDef(_message.Message):
    __slots__ = ("label", "line", "source", "run_by", "imported_by", "called_at", "targets")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    RUN_BY_FIELD_NUMBER: _ClassVar[int]
    IMPORTED_BY_FIELD_NUMBER: _ClassVar[int]
    CALLED_AT_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    label: str
    line: int
    source: str
    run_by: str
    imported_by: str
    called_at: str
    targets: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, label: _Optional[str] = ..., line: _Optional[int] = ..., source: _Optional[str] = ..., run_by: _Optional[str] = ..., imported_by: _Optional[str] = ..., called_at: _Optional[str] = ..., targets: _Optional[_Iterable[str]] = ...) -> None: ...
