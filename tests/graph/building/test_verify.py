"""The checker accepts what building makes, and shows where a tampered graph is broken."""

from collections.abc import Callable
from typing import Any

import pytest

import flowbook as fb
from flowbook.graph.building import verify


def build() -> fb.Graph:
    with fb.Graph().as_default() as graph:
        a = fb.placeholder(fb.float32, [2, 3], name="a")
        b = fb.constant([1.0, 2.0, 3.0], name="b")
        with fb.control_dependencies([b]):
            c = fb.add(a, b, name="c")
        fb.negative(c, name="d")
        fb.Variable(b, name="W")
    return graph


def test_what_was_built_is_accepted() -> None:
    graph = build()
    verify.check(graph)
    verify.check(graph.operations)
    verify.check(iter(graph.operations))
    verify.check([graph.get_operation_by_name("d")])
    verify.check(fb.Graph())


def test_retired_operations_may_be_referred_to() -> None:
    graph = build()
    graph.members.retire(graph.get_operation_by_name("b"))
    graph.members.retire(graph.get_operation_by_name("d"))
    verify.check(graph)


def test_lists_of_inputs_are_regrouped() -> None:
    with fb.Graph().as_default() as graph:
        fb.add_n([fb.constant(float(i)) for i in range(3)])
    verify.check(graph)


Ops = Callable[[str], Any]

BREACHES: dict[str, tuple[Callable[[Ops], object], str, str]] = {
    "no tensor": (
        lambda op: setattr(op("c"), "inputs", (op("a").outputs[0], 3)),
        "c",
        "input 1 is 3, not a tensor",
    ),
    "another graph": (
        lambda op: setattr(op("d"), "inputs", (build().get_tensor_by_name("c:0"),)),
        "d",
        "input 0, c:0, is in another graph",
    ),
    "later input": (
        lambda op: setattr(op("c"), "inputs", (op("a").outputs[0], op("d").outputs[0])),
        "c",
        "input 1, d:0, is operation 3, which does not come before operation 2",
    ),
    "port": (
        lambda op: setattr(op("c").inputs[0], "index", 1),
        "a",
        "output 0 is <Tensor 'a:1'",
    ),
    "foreign output": (
        lambda op: setattr(op("d"), "inputs", (copy_of(op("c").outputs[0]),)),
        "d",
        "input 0, c:0, is not among the 1 outputs of its operation",
    ),
    "input missing": (
        lambda op: setattr(op("c"), "inputs", op("c").inputs[:1]),
        "c",
        "1 input cannot fit 'x: T, y: T -> z: T'",
    ),
    "control input": (
        lambda op: setattr(op("c"), "control_inputs", (op("d"),)),
        "c",
        "control input 'd' is operation 3, which does not come before operation 2",
    ),
    "control input is no operation": (
        lambda op: setattr(op("c"), "control_inputs", ("b",)),
        "c",
        "control input 'b' is not an operation",
    ),
    "colocation": (
        lambda op: setattr(op("c"), "colocation", (op("d"),)),
        "c",
        "'d', which it is colocated with, is operation 3",
    ),
    "colocated with no operation": (
        lambda op: setattr(op("c"), "colocation", (None,)),
        "c",
        "it is colocated with None, no operation",
    ),
    "device": (lambda op: setattr(op("c"), "device", "gpu0"), "c", "'gpu0' is not a device name"),
    "output dtype": (
        lambda op: setattr(op("d").outputs[0], "dtype", fb.float64),
        "d",
        r"output 0 is float64 \[2, 3\], but inference gives float32 \[2, 3\]",
    ),
    "output shape": (
        lambda op: setattr(op("d").outputs[0], "shape", fb.Shape([2, 4])),
        "d",
        r"output 0 is float32 \[2, 4\], but inference gives float32 \[2, 3\]",
    ),
    "output missing": (
        lambda op: setattr(op("d"), "outputs", ()),
        "d",
        "it has 0 outputs, but its type gives it 1",
    ),
    "input dtype": (
        lambda op: setattr(op("b").outputs[0], "dtype", fb.int32),
        "b",
        "output 0 is int32",
    ),
    "attribute missing": (
        lambda op: setattr(op("a"), "attributes", {"dtype": fb.float32}),
        "a",
        "it has the attributes dtype, but its type dtype, shape",
    ),
    "attribute of another kind": (
        lambda op: setattr(op("a"), "attributes", {"dtype": fb.float32, "shape": 3}),
        "a",
        "do not fit Placeholder",
    ),
    "not joined": (lambda op: setattr(op("c"), "id", -1), "c", "it has not joined its graph"),
    "name taken": (lambda op: setattr(op("d"), "name", "c"), "c", "operation 2 has this name too"),
    "name changed": (
        lambda op: setattr(op("d"), "name", "e"),
        "e",
        "does not have it by this name",
    ),
    "retired in the graph": (
        lambda op: setattr(op("c"), "retired", True),
        "c",
        "it is retired, but in the graph",
    ),
}


def copy_of(tensor: fb.Tensor) -> fb.Tensor:
    return fb.Tensor(tensor.op, tensor.index, tensor.dtype, tensor.shape)


@pytest.mark.parametrize(("breach", "name", "match"), BREACHES.values(), ids=BREACHES)
def test_a_breach_is_found(breach: Callable[[Ops], object], name: str, match: str) -> None:
    graph = build()
    breach(graph.get_operation_by_name)
    with pytest.raises(fb.errors.InternalError, match=match) as caught:
        verify.check(graph)
    assert caught.value.operation.name == name


def test_an_operation_outside_the_graph_is_found() -> None:
    graph = build()
    graph.members.retire(graph.get_operation_by_name("b"))
    graph.get_operation_by_name("c").inputs[1].op.retired = False
    with pytest.raises(fb.errors.InternalError, match="does not have it by this name"):
        verify.check(graph)


def test_the_error_shows_the_surroundings() -> None:
    graph = build()
    graph.get_tensor_by_name("c:0").shape = fb.Shape([4])
    with pytest.raises(fb.errors.InternalError) as caught:
        verify.check(graph.operations)
    first, site, *around = str(caught.value).split("\n  ")
    assert first == ("Add 'c': output 0 is float32 [4], but inference gives float32 [2, 3]")
    assert site.startswith("defined at test_verify.py, line ")
    assert around == [
        "  a:0 float32 [2, 3] = Placeholder()",
        "  b:0 float32 [3] = Const()",
        "> c:0 float32 [4] = Add(a:0, b:0, ^b)",
        "  d:0 float32 [2, 3] = Neg(c:0)",
    ]
