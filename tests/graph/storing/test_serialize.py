"""Graphs survive `to_bytes` and `from_bytes` whole, and what is not a graph is refused by name."""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.graph.building import verify
from flowbook.graph.model.attributes import same_attributes, same_value
from flowbook.graph.model.dtypes import resource
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import op_named
from flowbook.graph.storing.graph_pb2 import GraphDef
from flowbook.graph.storing.stored_values import MAX_DEPTH, digest_of_array
from tests.op_cases import CASES, Case
from tests.op_checks import each

HERE = "test_serialize.py"

holder = fb.OpDef(
    "SerializedHolder",
    "-> output: int32",
    attributes={"value": None},
    infer=lambda value: fb.Shape([]),
)


def small_graph() -> fb.Graph:
    """A graph with something of everything that operations have."""
    with fb.Graph().as_default() as graph:
        x = fb.placeholder(fb.float32, [None, 2], name="x")
        with fb.name_scope("layer"), fb.device("/device:cpu:0"), fb.container("shared"):
            W = fb.Variable(fb.constant([[1.0, 2.0], [3.0, 4.0]], name="start"), name="W")
            with fb.control_dependencies([x]), fb.colocate_with(W):
                y = fb.identity(x * W, name="y")
        frozen = fb.Variable([0, 1], trainable=False, name="frozen")
        fb.group(fb.assign_add(W, y), frozen, name="train")
        fb.constant([b"a", b"", b"\xff"], name="strings")
        graph.seed = 7
    return graph


def as_message(graph: fb.Graph) -> GraphDef:
    return GraphDef.FromString(graph.to_bytes())


def stored(message: GraphDef, name: str) -> Any:
    return next(op for op in message.operations if op.name == name)


def reload(graph: fb.Graph) -> fb.Graph:
    """The graph from its bytes, held against the original."""
    data = graph.to_bytes()
    loaded = fb.Graph.from_bytes(data)
    verify.check(loaded)
    assert loaded.to_bytes() == data
    assert loaded.seed == graph.seed
    assert [op.name for op in loaded.operations] == [op.name for op in graph.operations]
    for ours, theirs in zip(loaded.operations, graph.operations, strict=True):
        assert_same_operation(ours, theirs)
    assert [str(v) for v in loaded.variables()] == [str(v) for v in graph.variables()]
    assert [o.name for o in loaded.stateful_operations()] == [
        o.name for o in graph.stateful_operations()
    ]
    return loaded


def assert_same_operation(ours: Operation, theirs: Operation) -> None:
    assert ours.op_def is theirs.op_def
    assert [t.name for t in ours.inputs] == [t.name for t in theirs.inputs]
    assert [(t.dtype, t.shape) for t in ours.outputs] == [
        (t.dtype, t.shape) for t in theirs.outputs
    ]
    assert [o.name for o in ours.control_inputs] == [o.name for o in theirs.control_inputs]
    assert [o.name for o in ours.colocation] == [o.name for o in theirs.colocation]
    assert (ours.device, ours.container) == (theirs.device, theirs.container)
    assert same_attributes(ours.attributes, theirs.attributes)
    assert str(ours.site) == str(theirs.site)


# Round trips


def test_everything_that_an_operation_has_survives() -> None:
    loaded = reload(small_graph())
    y = loaded.get_operation_by_name("layer/y")
    assert y.device == "/device:cpu:0"
    assert [o.name for o in y.control_inputs] == ["x"]
    assert [o.name for o in y.colocation] == ["layer/W"]
    assert loaded.get_operation_by_name("layer/W").container == "shared"


def test_an_empty_graph_survives() -> None:
    assert not reload(fb.Graph()).operations


def test_variables_are_known_again() -> None:
    loaded = reload(small_graph())
    W, frozen = loaded.variables()
    assert [v.op.name for v in loaded.variables(trainable=True)] == ["layer/W"]
    assert W.initial_value.name == "layer/start:0"
    assert W.initializer.name == "layer/W/Assign"
    assert W.value.name == "layer/W/read:0"
    assert (frozen.dtype, frozen.shape) == (fb.int32, [2])


def test_a_loaded_graph_can_be_extended_and_differentiated() -> None:
    loaded = reload(small_graph())
    y = loaded.get_tensor_by_name("layer/y:0")
    [gradient] = fb.gradients(y, [loaded.variables()[0]])
    assert gradient.shape == [2, 2]
    reload(loaded)


def train(graph: fb.Graph, steps: int) -> list[Any]:
    with fb.Session(graph=graph) as sess:
        data = {"x:0": np.arange(6, dtype=np.float32).reshape(3, 2)}
        return [sess.run(["loss:0", "update:0", "noise:0"], data) for _ in range(steps)]


def test_a_loaded_graph_trains_like_the_original() -> None:
    with fb.Graph().as_default() as graph:
        graph.seed = 3
        x = fb.placeholder(fb.float32, [None, 2], name="x")
        W = fb.Variable(fb.random_normal([2, 1]), name="W")
        loss = fb.reduce_sum(fb.square(fb.matmul(x, W)), name="loss")
        [gradient] = fb.gradients(loss, [W])
        fb.assign_sub(W, 0.01 * gradient, name="update")
        fb.random_uniform([3], name="noise")
    for ours, theirs in zip(train(reload(graph), 3), train(graph, 3), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_retired_variable_is_initialised_like_the_original() -> None:
    with fb.Graph().as_default() as graph:
        W = fb.Variable([1.0, 2.0], name="W")
        y = fb.multiply(W, 2.0, name="y")
        for op in graph.operations:
            if op.name.startswith("W"):
                graph.members.retire(op)
        fb.Variable([7.0, 8.0], name="W")
    assert y.op.inputs[0].op.inputs[0].op.name == "W@1"
    loaded = reload(graph)
    assert [v.op.name for v in loaded.variables()] == ["W"]
    for g in (graph, loaded):
        with fb.Session(graph=g) as sess, pytest.warns(fb.errors.StaleDefinitionWarning):
            np.testing.assert_array_equal(sess.run("y:0"), [2.0, 4.0])


def test_names_are_taken_as_in_the_original() -> None:
    graph = small_graph()
    with graph.as_default(), fb.name_scope("empty"):
        pass

    def extend(graph: fb.Graph) -> list[str]:
        with graph.as_default():
            names = [fb.no_op(name=n).name for n in ("x", "x", "layer", "Mul")]
            for n in ("layer", "empty", "W"):
                with fb.name_scope(n) as prefix:
                    names.append(prefix)
        return names

    loaded = reload(graph)
    assert extend(loaded) == extend(graph)


ATTRIBUTES = [
    None,
    True,
    False,
    0,
    -1,
    2**63 - 1,
    -(2**63),
    2**63,
    -(2**63) - 1,
    3**500,
    -(3**500),
    0.1,
    -0.0,
    float("inf"),
    float("nan"),
    complex(-0.0, float("nan")),
    "",
    "Grüße, 世界 \0",
    b"",
    b"\xff\0",
    fb.float16,
    fb.string,
    resource,
    fb.Shape(None),
    fb.Shape([]),
    fb.Shape([None, 3, 0]),
    np.float32(0.1),
    np.bool_(True),
    np.int64(-5),
    np.zeros([0, 3], np.float64),
    np.array(-0.0),
    np.array([True, False]),
    np.arange(6, dtype=np.int16).reshape(2, 3).T,
    np.array([1 + 2j], np.complex64),
    np.array([[b"a", b""], [b"bc", b"\0"]], dtype=object),
    np.array([], dtype=object),
    (),
    (None, (1, (2.0, "x")), fb.int8, fb.Shape([None]), np.arange(3)),
]


@pytest.mark.parametrize("value", ATTRIBUTES, ids=lambda value: f"{value!r:.30}")
def test_attributes_survive(value: Any) -> None:
    with fb.Graph().as_default() as graph:
        holder(value=value, name="holder")
    loaded = fb.Graph.from_bytes(graph.to_bytes())
    found = loaded.get_operation_by_name("holder").attributes["value"]
    assert type(found) is type(value)
    assert same_value(found, value)
    assert loaded.to_bytes() == graph.to_bytes()


def test_the_bits_of_nan_survive() -> None:
    nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_BEEF))[0]
    with fb.Graph().as_default() as graph:
        holder(value=nan, name="holder")
    found = fb.Graph.from_bytes(graph.to_bytes()).get_operation_by_name("holder")
    assert struct.pack("<d", found.attributes["value"]) == struct.pack("<d", nan)


def test_arrays_of_another_byte_order_survive_in_value() -> None:
    with fb.Graph().as_default() as graph:
        holder(value=np.arange(3, dtype=">i4"), name="holder")
    found = fb.Graph.from_bytes(graph.to_bytes()).get_operation_by_name("holder")
    assert found.attributes["value"].tolist() == [0, 1, 2]


def test_a_loaded_constant_owns_its_memory_and_cannot_be_written_to() -> None:
    value = reload(small_graph()).get_operation_by_name("layer/start").attributes["value"]
    assert value.flags.owndata
    assert not value.flags.writeable


def test_equal_arrays_are_stored_once() -> None:
    table = np.arange(10_000, dtype=np.float64)
    with fb.Graph().as_default() as graph:
        for _ in range(5):
            fb.constant(table)
        fb.constant(table.astype(np.int64))
        fb.constant(table.reshape(100, 100))
    assert len(as_message(graph).arrays) == 3
    assert len(graph.to_bytes()) < 3.1 * table.nbytes


def test_equal_graphs_have_equal_bytes() -> None:
    assert small_graph().to_bytes() == small_graph().to_bytes()


def test_retired_operations_that_are_referred_to_survive() -> None:
    with fb.Graph().as_default() as graph:
        a = fb.constant(1.0, name="a")
        b = fb.negative(a, name="b")
        with fb.control_dependencies([b]):
            fb.negative(b, name="c")
        fb.constant(2.0, name="unused")
        for name in ("a", "b", "unused"):
            graph.members.retire(graph.get_operation_by_name(name))
        fb.constant(3.0, name="a")
    loaded = reload(graph)
    old_b = loaded.get_operation_by_name("c").inputs[0].op
    old_a = old_b.inputs[0].op
    assert (old_a.name, old_b.name) == ("a@1", "b@1")
    assert old_a.retired
    assert old_b.retired
    assert loaded.get_operation_by_name("a").attributes["value"] == 3.0


def test_generations_go_on_after_those_of_the_file() -> None:
    with fb.Graph().as_default() as graph:
        a = fb.constant(1.0, name="a")
        fb.negative(a, name="b")
        graph.members.retire(a.op)
        fb.constant(2.0, name="a")
    loaded = reload(graph)
    newer = loaded.get_operation_by_name("a")
    loaded.members.retire(newer)
    assert newer.name == "a@2"


@each(CASES)
def test_every_operation_type_survives(case: Case) -> None:
    values = [np.asarray(value) for value in case.inputs]
    if fb.float64 not in op_named(case.type).type_variables.get("T", [fb.float64]):
        values = [value.astype(int) if value.dtype.kind == "f" else value for value in values]
    with fb.Graph().as_default() as graph:
        case.build(*[fb.constant(value) for value in values])
    verify.check(graph)
    if any(callable(v) for op in graph.operations for v in op.attributes.values()):
        with pytest.raises(fb.errors.UnimplementedError, match="Python code"):
            graph.to_bytes()
    else:
        reload(graph)


# Where operations came from


def test_operations_cite_the_lines_that_built_the_original() -> None:
    x = reload(small_graph()).get_operation_by_name("x")
    assert x.site.place.startswith(f"{HERE}, line ")
    assert x.site.source.startswith("x = fb.placeholder(")
    with pytest.raises(fb.errors.InvalidArgumentError, match=rf"{HERE}, line {x.site.line}\)"):
        fb.add(x.outputs[0], np.zeros([3], np.float32))


def test_gradients_of_loaded_operations_cite_them_too() -> None:
    loaded = reload(small_graph())
    y = loaded.get_operation_by_name("layer/y")
    fb.gradients(y.outputs[0], loaded.variables())
    backward = [op for op in loaded.operations if op.name.startswith("gradients/layer/y_grad")]
    assert all(op.site.source == y.site.source for op in backward)


def test_a_line_is_stored_once() -> None:
    with fb.Graph().as_default() as graph:
        for _ in range(10):
            fb.no_op()
    assert len(as_message(graph).sites) == 1


# What cannot be stored


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (small_graph, r"Python code \(small_graph\)"),
        (np.add, r"Python code \(add\)"),
        (np.array([b"a"]), "a ndarray"),
    ],
)
def test_what_is_not_plain_data_is_refused_by_name(value: Any, what: str) -> None:
    with fb.Graph().as_default() as graph:
        holder(value=value, name="holder")
    with pytest.raises(fb.errors.UnimplementedError, match=what) as caught:
        graph.to_bytes()
    assert caught.value.operation is graph.get_operation_by_name("holder")
    assert "SerializedHolder 'holder': attribute 'value': " in str(caught.value)
    assert f"defined at {HERE}, line " in str(caught.value)


@pytest.mark.parametrize("value", ["\ud800", fb.Shape([2**63])])
def test_values_that_no_reader_could_take_are_refused(value: Any) -> None:
    with fb.Graph().as_default() as graph:
        holder(value=value)
    with pytest.raises(fb.errors.InvalidArgumentError, match="attribute 'value'"):
        graph.to_bytes()


def test_tuples_are_bounded_in_depth() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = (value,)
    with fb.Graph().as_default() as graph:
        holder(value=value)
        reload(graph)
        holder(value=(value,))
    with pytest.raises(fb.errors.InvalidArgumentError, match="nested more than"):
        graph.to_bytes()


# What cannot be read


@pytest.mark.parametrize("data", [b"", b"\x80", b"GIF89a", b"\0" * 100, b"PK\x03\x04" * 9])
def test_foreign_data_are_refused(data: bytes) -> None:
    with pytest.raises(fb.errors.DataLossError, match="not a stored graph"):
        fb.Graph.from_bytes(data)


def test_only_bytes_are_read() -> None:
    data = small_graph().to_bytes()
    assert fb.Graph.from_bytes(bytearray(data)).to_bytes() == data
    assert fb.Graph.from_bytes(memoryview(data)).to_bytes() == data
    with pytest.raises(fb.errors.InvalidTypeError, match="read_bytes"):
        fb.Graph.from_bytes("graph.pb")


def test_a_graph_cut_anywhere_is_refused() -> None:
    data = small_graph().to_bytes()
    for length in range(len(data)):
        with pytest.raises(fb.errors.DataLossError):
            fb.Graph.from_bytes(data[:length])


@given(st.data())
def test_damaged_data_give_an_error_or_a_graph_that_keeps_the_rules(data: st.DataObject) -> None:
    damaged = bytearray(small_graph().to_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        loaded = fb.Graph.from_bytes(bytes(damaged))
    except fb.errors.OpError:
        return
    verify.check(loaded)


Damage = Callable[[GraphDef], Any]


def on(name: str, change: Callable[[Any], Any]) -> Damage:
    """A change of the stored operation of that name."""
    return lambda message: change(stored(message, name))


MISFIT, LOSS = fb.errors.InvalidArgumentError, fb.errors.DataLossError

DAMAGES: dict[str, tuple[Damage, type[Exception], str]] = {
    "newer format": (lambda m: setattr(m.version, "min_reader", 99), MISFIT, "newer Flowbook"),
    "no seed": (lambda m: m.ClearField("seed"), LOSS, "value is missing"),
    "seed is text": (lambda m: setattr(m.seed, "text", "7"), LOSS, "seed is '7'"),
    "array changed": (lambda m: setattr(m.arrays[0], "data", b"1234"), LOSS, "another digest"),
    "array missing": (lambda m: m.arrays.pop(0), LOSS, "array [0-9a-f]{32} is missing"),
    "operation missing": (lambda m: m.operations.pop(0), LOSS, "it refers to"),
    "scope's name": (lambda m: m.scopes.append("no scope"), MISFIT, "not a valid name"),
    "type": (
        on("x", lambda op: setattr(op, "type", "Plaecholder")),
        fb.errors.NotFoundError,
        "Plaecholder 'x': no operation type 'Plaecholder'.*did you mean Placeholder",
    ),
    "name taken": (
        on("layer/Mul", lambda op: setattr(op, "name", "x")),
        fb.errors.AlreadyExistsError,
        "Mul 'x': the graph has an operation 'x' already",
    ),
    "name": (on("x", lambda op: setattr(op, "name", "no name")), MISFIT, "not a valid name"),
    "retired": (
        on("x", lambda op: setattr(op, "retired", True)),
        MISFIT,
        "not the name of a retired operation",
    ),
    "site": (on("x", lambda op: setattr(op, "site", 10_000)), LOSS, "refers to site 9999"),
    "device": (
        on("x", lambda op: setattr(op, "device", "gpu0")),
        MISFIT,
        "'gpu0' is not a device name",
    ),
    "attribute missing": (
        on("x", lambda op: op.attributes.pop(0)),
        MISFIT,
        "the attributes are shape, but Placeholder has dtype, shape",
    ),
    "attribute unknown": (
        on("x", lambda op: setattr(op.attributes[1], "name", "colour")),
        MISFIT,
        "the attributes are dtype, colour, but Placeholder has dtype, shape",
    ),
    "attribute empty": (
        on("x", lambda op: op.attributes[1].ClearField("value")),
        LOSS,
        "attribute 'shape': a value is missing",
    ),
    "attribute twice": (
        on("x", lambda op: op.attributes.append(op.attributes[0])),
        LOSS,
        "attribute 'dtype' is stored twice",
    ),
    "attribute's dtype": (
        on("x", lambda op: setattr(op.attributes[0].value, "dtype", "float33")),
        LOSS,
        "attribute 'dtype': 'float33' is not a dtype",
    ),
    "attribute's kind": (
        on("x", lambda op: setattr(op.attributes[1].value, "integer", 3)),
        MISFIT,
        "'shape' is of type Shape",
    ),
    "output's dtype": (
        on("x", lambda op: setattr(op.outputs[0], "dtype", "float64")),
        MISFIT,
        r"stored as float64 \[\?, 2\], but inference gives float32 \[\?, 2\]",
    ),
    "output's shape": (
        on("x", lambda op: op.outputs[0].shape.dims.__setitem__(0, 5)),
        MISFIT,
        r"stored as float32 \[5, 2\], but inference gives float32 \[\?, 2\]",
    ),
    "dimension": (
        on("x", lambda op: op.outputs[0].shape.dims.__setitem__(0, -2)),
        LOSS,
        "negative dimension",
    ),
    "rank": (
        on("x", lambda op: setattr(op.outputs[0].shape, "has_rank", False)),
        LOSS,
        "unknown rank has dimensions",
    ),
    "output added": (
        on("x", lambda op: op.outputs.add()),
        MISFIT,
        "stored with 2 outputs, but its type gives it 1",
    ),
    "input's operation": (
        on("layer/Mul", lambda op: setattr(op.inputs[0], "operation", 999)),
        LOSS,
        "refers to operation 999",
    ),
    "input's port": (
        on("layer/Mul", lambda op: setattr(op.inputs[0], "port", 1)),
        LOSS,
        "refers to output of 'x' 1",
    ),
    "input missing": (on("layer/Mul", lambda op: op.inputs.pop()), MISFIT, "1 input cannot fit"),
    "input added": (on("layer/Mul", lambda op: op.inputs.add()), MISFIT, "3 inputs cannot fit"),
    "input's dtype": (
        on("layer/Mul", lambda op: setattr(op.inputs[1], "operation", 2)),
        MISFIT,
        "is one of .*, but layer/W:0 is resource",
    ),
    "control input": (
        on("layer/y", lambda op: op.control_inputs.append(999)),
        LOSS,
        "refers to operation 999",
    ),
    "colocation": (
        on("layer/y", lambda op: op.colocation.append(999)),
        LOSS,
        "refers to operation 999",
    ),
    "constant": (
        on("layer/start", lambda op: setattr(op.attributes[1].value, "dtype", "int32")),
        MISFIT,
        "the value is not an array of int32",
    ),
}


@pytest.mark.parametrize(("damage", "error", "match"), DAMAGES.values(), ids=DAMAGES)
def test_what_does_not_fit_is_refused(damage: Damage, error: type[Exception], match: str) -> None:
    message = as_message(small_graph())
    damage(message)
    with pytest.raises(error, match=f"(?s){match}"):
        fb.Graph.from_bytes(message.SerializeToString())


def test_an_error_names_the_operation_and_its_line() -> None:
    message = as_message(small_graph())
    stored(message, "x").outputs[0].dtype = "float64"
    with pytest.raises(fb.errors.InvalidArgumentError) as caught:
        fb.Graph.from_bytes(message.SerializeToString())
    assert caught.value.message.startswith("Placeholder 'x': output 0 was stored as")
    assert f"defined at {HERE}, line " in str(caught.value)
    with fb.Graph().as_default() as graph:
        fb.fft([1j], name="spectrum")
    message = as_message(graph)
    stored(message, "spectrum").attributes[0].value.text = "neither"
    with pytest.raises(fb.errors.InvalidArgumentError) as caught:
        fb.Graph.from_bytes(message.SerializeToString())
    assert caught.value.message.startswith("FFT 'spectrum': 'norm' is one of 'backward'")
    assert '  fb.fft([1j], name="spectrum")' in str(caught.value)


@pytest.mark.parametrize(
    ("dtype", "dims", "data"),
    [
        ("float32", [2**62, 2**62], b"1234"),
        ("float32", [2], b"1234"),
        ("float32", [1] * 65, b"1234"),
        ("float32", [0, 2**63], b""),
        ("string", [2], b"12345678"),
        ("resource", [], b""),
        ("bool", [2], b"\1\2"),
    ],
)
def test_arrays_that_lie_about_themselves_are_refused(
    dtype: str, dims: list[int], data: bytes
) -> None:
    message = as_message(small_graph())
    array = message.arrays.add(dtype=dtype, dims=dims, data=data)
    array.digest = digest_of_array(array)
    with pytest.raises(fb.errors.DataLossError, match=dtype):
        fb.Graph.from_bytes(message.SerializeToString())


def test_what_an_older_version_did_not_know_is_filled_in() -> None:
    message = as_message(small_graph())
    x = stored(message, "x")
    x.outputs[0].shape.has_rank = False
    x.outputs[0].shape.dims.clear()
    del stored(message, "layer/W").attributes[2:]
    loaded = fb.Graph.from_bytes(message.SerializeToString())
    assert loaded.get_tensor_by_name("x:0").shape == [None, 2]
    assert loaded.get_operation_by_name("layer/W").attributes["trainable"] is True


# Graphs at random

UNARY: list[Callable[[Any], Any]] = [
    fb.identity,
    fb.stop_gradient,
    fb.negative,
    fb.shape,
    lambda x: fb.add_n([x, x, x]),
    lambda x: fb.cast(x, fb.float64),
    lambda x: fb.expand_dims(x, -1),
    lambda x: fb.reduce_sum(x, 0) if x.shape.rank else x,
    lambda x: fb.reshape(x, [-1]),
    lambda x: fb.transpose(x),
    lambda x: x[..., ::-1] if x.shape.rank else x[None],
]
BINARY: list[Callable[[Any, Any], Any]] = [
    fb.add,
    fb.maximum,
    lambda x, y: fb.where(x > y, x, y),
    lambda x, y: x * 2 - y,
]


@st.composite
def graphs(draw: st.DrawFn) -> fb.Graph:
    """Graphs of a few operations under scopes, with variables, some operations retired."""
    with fb.Graph().as_default() as graph:
        tensors: list[Any] = [
            fb.placeholder(fb.float32, draw(st.sampled_from([None, [], [None, 3], [2, 3]]))),
            fb.constant(draw(st.floats(width=32))),
            fb.constant(np.arange(3), draw(st.sampled_from([fb.int32, fb.float32, fb.int64]))),
        ]
        for _ in range(draw(st.integers(0, 12))):
            with (
                fb.name_scope(draw(st.sampled_from([None, "a", "b"]))),
                fb.device(draw(st.sampled_from([None, "/device:cpu:0", "/job:worker/task:1"]))),
                fb.container(draw(st.sampled_from(["", "shared"]))),
                fb.control_dependencies(draw(st.lists(st.sampled_from(tensors), max_size=2))),
                fb.colocate_with(draw(st.sampled_from(tensors))),
            ):
                tensors.append(draw_tensor(draw, tensors))
        parts_of_variables = ("Assign", "ReadVariable")
        others = [op for op in graph.operations if op.type not in parts_of_variables]
        for op in draw(st.lists(st.sampled_from(others), max_size=2, unique=True)):
            graph.members.retire(op)
        graph.seed = draw(st.none() | st.integers())
    return graph


def draw_tensor(draw: st.DrawFn, tensors: list[Any]) -> Any:
    """A tensor built from one or two of the given ones, or a new variable."""
    x = draw(st.sampled_from(tensors))
    numbers = [t for t in tensors if t.dtype is x.dtype and t.shape.rank in (0, 1)]
    kind = draw(st.sampled_from(["unary", "binary", "variable", "assign"]))
    if kind == "binary" and numbers and x.shape.rank in (0, 1):
        try:
            return draw(st.sampled_from(BINARY))(x, draw(st.sampled_from(numbers)))
        except fb.errors.InvalidArgumentError:
            return x  # Their shapes do not broadcast; the constants made on the way may stay.
    if kind == "variable":
        return fb.Variable(x, trainable=draw(st.booleans())).value
    if kind == "assign" and x.graph.variables():
        return fb.assign(x.graph.variables()[-1], x.graph.variables()[-1].initial_value)
    return draw(st.sampled_from(UNARY))(x)


@given(graphs())
def test_any_graph_survives(graph: fb.Graph) -> None:
    verify.check(graph)
    reload(graph)


def _imported(graph: fb.Graph) -> fb.Graph:
    with fb.Graph().as_default() as made:
        fb.import_graph_def(graph.to_bytes(), name="")
    return made


OF_BYTES = pytest.mark.parametrize(
    "load", [lambda graph: fb.Graph.from_bytes(graph.to_bytes()), _imported], ids=["read", "import"]
)


@OF_BYTES
def test_what_may_not_be_fed_is_stored(load: Callable[[fb.Graph], fb.Graph]) -> None:
    x = fb.placeholder_with_default(1.0, [], name="x")
    w = fb.Variable(2.0, name="w")
    fb.multiply(x, w, name="y")
    x.graph.prevent_feeding(x)
    x.graph.prevent_feeding(w)
    graph = load(x.graph)
    assert graph.to_bytes() == x.graph.to_bytes() or load is _imported
    with fb.Session(graph=graph) as sess:
        assert sess.run("y:0") == 2.0
        assert sess.run("y:0", {"y:0": 5.0}) == 5.0
        for name in ("x:0", "w:0"):
            with pytest.raises(fb.errors.InvalidArgumentError, match=f"{name}' was prevented"):
                sess.run("y:0", {name: 3.0})


@OF_BYTES
def test_a_constraint_that_is_lost_is_missed(load: Callable[[fb.Graph], fb.Graph]) -> None:
    w = fb.Variable(1.0, name="w", constraint=lambda value: fb.maximum(value, 0.75))
    fb.Variable(1.0, name="free")
    optimizer = fb.train.GradientDescentOptimizer(0.1)
    train = optimizer.minimize(w * w, name="train")
    assert train.name == "train"
    graph = load(w.graph)
    kept = {variable.op.name: variable for variable in graph.variables()}
    assert kept["free"].constraint is None
    with graph.as_default(), fb.Session() as sess:
        for _ in range(5):
            sess.run("train")
        assert sess.run(kept["w"]) == 0.75  # The steps that were stored keep to it.
        loss = kept["w"] * kept["w"]
        with pytest.raises(fb.errors.FailedPreconditionError, match="'w' has a constraint") as lost:
            fb.train.GradientDescentOptimizer(0.1).minimize(loss)
        assert "variable.constraint = " in str(lost.value)
        kept["w"].constraint = lambda value: fb.maximum(value, 0.5)
        train = fb.train.GradientDescentOptimizer(0.1).minimize(loss)
        for _ in range(5):
            sess.run(train)
        assert sess.run(kept["w"]) == 0.5
