"""Functions of TensorFlow's graphs: calls, branches and loops by functions, and hostile ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.tensorflow.functions import expanding
from flowbook.tensorflow.functions.library import Library
from flowbook.tensorflow.messages_pb2 import FunctionDef, GraphDef, NameAttrList, NodeDef
from tests.need import requires

DATA = Path(__file__).parent / "data"
FLOAT, INT, BOOL, RESOURCE = 1, 3, 10, 20


def node(line: str, **attributes: Any) -> NodeDef:
    """A node of a line such as "y Relu x ^init"; dtypes and functions are its attributes."""
    name, op, *inputs = line.split()
    found = NodeDef(name=name, op=op, input=inputs)
    for key, value in attributes.items():
        attribute = found.attr[key]
        if isinstance(value, str):
            attribute.func.name = value
        elif isinstance(value, list):
            attribute.list.func.extend(NameAttrList(name=each) for each in value)
        elif isinstance(value, float):
            attribute.tensor.dtype = found.attr["dtype"].type = FLOAT
            attribute.tensor.float_val.append(value)
        else:
            attribute.type = value
    return found


def const(name: str, value: float) -> NodeDef:
    return node(f"{name} Const", value=value)


def function(
    name: str, arguments: str, nodes: list[NodeDef], results: list[str], ends: str = ""
) -> FunctionDef:
    """A function; "y Mul x x" takes arguments, "y:z:0" are results."""
    found = FunctionDef(node_def=nodes)
    found.signature.name = name
    for argument in arguments.split():
        found.signature.input_arg.add(name=argument, type=FLOAT)
    for place, text in enumerate(results):
        found.signature.output_arg.add(name=f"r{place}", type=FLOAT)
        found.ret[f"r{place}"] = text
    for each in ends.split():
        found.signature.is_stateful = True
        found.control_ret[each] = each
    return found


def graph(nodes: list[NodeDef], *functions: FunctionDef) -> GraphDef:
    found = GraphDef(node=nodes)
    found.library.function.extend(functions)
    return found


def x() -> NodeDef:
    found = node("x Placeholder", dtype=FLOAT)
    found.attr["shape"].shape.unknown_rank = True
    return found


def run(message: GraphDef, fetch: str, fed: float = 3.0) -> Any:
    model = fb.tensorflow.load(message)
    with fb.Session() as sess:
        # The first run goes kernel by kernel, the second as generated code.
        first, second = (sess.run(model[fetch], {model["x:0"]: fed}) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    return first


SQUARE = function("square", "a", [node("y Mul a a")], ["y:z:0"])
TWICE = function(
    "twice",
    "a",
    [node("b PartitionedCall a", f="square"), node("c square b:output:0")],
    ["c:r0:0"],
)


def test_a_call_is_a_copy_of_the_function_and_of_those_that_it_calls() -> None:
    message = graph([x(), node("y PartitionedCall x", f="twice")], SQUARE, TWICE)
    model = fb.tensorflow.load(message)
    [dy] = fb.gradients(model["y:0"], [model["x:0"]])
    with fb.Session() as sess:
        assert sess.run([model["y:0"], dy], {model["x:0"]: 3.0}) == [81.0, 108.0]
    assert {op.name for op in model.graph.operations} >= {"y", "y/b/y", "y/c/y"}
    assert not fb.get_default_graph().get_operation_by_name("y").inputs[0].op.control_inputs


def test_outputs_are_named_by_words_and_attributes_by_placeholders() -> None:
    moments = function(
        "moments",
        "a",
        [node("u Unique a", out_idx=INT), node("n Cast u:idx:0")],
        ["n:y:0", "u:y:0"],
    )
    moments.node_def[1].attr["DstT"].placeholder = "T"
    call = node("y StatefulPartitionedCall x", f="moments")
    message = graph([x(), call, node("z Cast y:1", DstT=INT)], moments)
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"'moments' .* attribute 'T'"):
        run(message, "y:0")
    message.node[1].attr["f"].func.attr["T"].type = 2
    assert run(message, "y:0", [5.0, 5.0, 4.0]).dtype == np.float64
    with fb.Graph().as_default():
        assert run(message, "z:0", [5.0, 5.0, 4.0]).tolist() == [5, 4]


def test_of_several_lists_of_outputs_each_has_as_many_as_the_node_says() -> None:
    parts = node("p SparseSplit axis i v s")
    parts.attr["num_split"].i = 2
    body = function("parts", "axis i v s", [parts], ["p:output_values:1", "p:output_shape:0"])
    nodes = [x(), node("y PartitionedCall axis i x s", f="parts")]
    for name, values, dims in (("axis", [0], []), ("i", [0, 1, 3], [3, 1]), ("s", [4], [1])):
        made = node(f"{name} Const")
        tensor = made.attr["value"].tensor
        made.attr["dtype"].type = tensor.dtype = 9
        tensor.int64_val.extend(values)
        for size in dims:
            tensor.tensor_shape.dim.add(size=size)
        nodes.append(made)
    nodes[0].attr["shape"].shape.unknown_rank = False
    nodes[0].attr["shape"].shape.dim.add(size=3)
    message = graph(nodes, body)
    assert run(message, "y:0", [5.0, 6.0, 7.0]).tolist() == [7.0]
    with fb.Graph().as_default():
        assert run(message, "y:1", [5.0, 6.0, 7.0]).tolist() == [2]


def test_a_loop_of_nodes_in_a_function_has_a_frame_for_each_call() -> None:
    loop_of_nodes = [
        node("enter Enter a"),
        node("merge Merge enter:output:0 next:output:0"),
        node("limit Const ^merge", value=20.0),
        node("less Less merge:output:0 limit:output:0"),
        node("goes LoopCond less:z:0"),
        node("switch Switch merge:output:0 goes:output:0"),
        node("more Add switch:output_true:0 switch:output_true:0"),
        node("next NextIteration more:z:0"),
        node("exit Exit switch:output_false:0"),
    ]
    loop_of_nodes[0].attr["frame_name"].s = b"frame"
    body = function("f", "a", loop_of_nodes, ["exit:output:0"])
    calls = [node("y f x"), node("n Neg x"), node("m Neg n"), node("z f m"), node("s Add y z")]
    assert run(graph([x(), *calls], body), "s:0") == 48.0
    frames = {
        op.attributes["frame_name"]
        for op in fb.get_default_graph().operations
        if op.type == "Enter"
    }
    assert len(frames) == 2


def test_what_a_function_does_is_done_before_what_it_gives() -> None:
    add = function(
        "add",
        "v a",
        [node("w AssignAddVariableOp v a", dtype=FLOAT), node("kept Identity a")],
        ["kept:output:0"],
        "w",
    )
    v = node("v VarHandleOp", dtype=FLOAT)
    v.attr["shape"].shape.Clear()
    nodes = [
        x(),
        v,
        const("zero", 0.0),
        node("v/Assign AssignVariableOp v zero"),
        node("first StatefulPartitionedCall v x", f="add"),
        node("second StatefulPartitionedCall v first ^first", f="add"),
        node("read ReadVariableOp v ^second", dtype=FLOAT),
    ]
    model = fb.tensorflow.load(graph(nodes, add))
    with fb.Session() as sess:
        assert [sess.run(model["read:0"], {model["x:0"]: 3.0}) for _ in range(3)] == [6, 12, 18]


def test_what_a_function_does_waits_for_what_its_call_waits_for() -> None:
    nothing = function("nothing", "a", [const("one", 1.0), node("p Neg a")], ["one:output:0"])
    stop = node("stop Assert no x")
    stop.attr["T"].list.type.append(FLOAT)
    no = node("no IsNan x")
    message = graph([x(), no, stop, node("y PartitionedCall x ^stop", f="nothing")], nothing)
    with pytest.raises(fb.errors.InvalidArgumentError, match="assert"):
        run(message, "y:0")


@pytest.mark.parametrize(("fed", "wanted"), [(3.0, 9.0), (-3.0, 7.0)])
def test_a_branch_of_functions(fed: float, wanted: float) -> None:
    seven = function("seven", "a", [const("s", 7.0)], ["s:output:0"])
    nodes = [
        x(),
        const("zero", 0.0),
        node("more Greater x zero"),
        node("y If more x", then_branch="square", else_branch="seven", Tcond=BOOL),
        node("z Neg y"),
    ]
    message = graph(nodes, SQUARE, seven)
    assert run(message, "z:0", fed) == -wanted
    model = fb.tensorflow.load(message, name="again")
    [dy] = fb.gradients(model["y:0"], [model["x:0"]])
    with fb.Session() as sess:
        assert sess.run(dy, {model["x:0"]: fed}) == (6.0 if fed > 0 else 0.0)


def test_a_branch_that_gives_nothing_is_waited_for() -> None:
    stop = function("stop", "a", [node("no IsNan a"), node("s Assert no:y:0 a")], [], "s")
    stop.node_def[1].attr["T"].list.type.append(FLOAT)
    go = function("go", "a", [], [])
    call = node("y If x x", then_branch="stop", else_branch="go", Tcond=FLOAT)
    message = graph([x(), call, node("z Identity x ^y")], stop, go)
    assert run(message, "z:0", 0.0) == 0.0
    with fb.Graph().as_default(), pytest.raises(fb.errors.InvalidArgumentError, match="assert"):
        run(message, "z:0", 1.0)


@pytest.mark.parametrize(("index", "wanted"), [(0, 9.0), (1, -3.0), (2, 7.0), (-1, 7.0), (8, 7.0)])
def test_one_of_several_functions(index: int, wanted: float) -> None:
    negative = function("negative", "a", [node("y Neg a")], ["y:y:0"])
    seven = function("seven", "a", [const("s", 7.0)], ["s:output:0"])
    nodes = [
        x(),
        node("i Cast n", DstT=INT),
        const("n", float(index)),
        node("y Case i x", branches=["square", "negative", "seven"]),
    ]
    assert run(graph(nodes, SQUARE, negative, seven), "y:0") == wanted


def loop() -> GraphDef:
    """A loop that doubles a value while it is less than a limit, which it only hands on."""
    less = function("less", "a limit", [node("l Less a limit")], ["l:z:0"])
    double = function(
        "double",
        "a limit",
        [node("s Add a a"), node("same Identity limit")],
        ["s:z:0", "same:output:0"],
    )
    call = node("y While x limit", cond="less", body="double")
    return graph([x(), const("limit", 20.0), call, node("z Identity y:1")], less, double)


def test_a_loop_of_functions() -> None:
    assert run(loop(), "y:0") == 24.0
    model = fb.tensorflow.load(loop(), name="again")
    types = [op.type for op in model.graph.operations if op.name.startswith("again/")]
    # What is only handed on does not go round.
    assert types.count("Merge") == types.count("NextIteration") == 1
    [dy] = fb.gradients(model["y:0"], [model["x:0"]])
    with fb.Session() as sess:
        assert sess.run([dy, model["z:0"]], {model["x:0"]: 3.0}) == [8.0, 20.0]


def test_a_loop_of_which_nothing_goes_round() -> None:
    """It ends by what it does to a variable, or, as here, at once."""
    never = function("never", "a", [node("n IsNan a")], ["n:y:0"])
    same = function("same", "a", [], ["a"])
    message = graph([x(), node("y StatelessWhile x", cond="never", body="same")], never, same)
    assert run(message, "y:0") == 3.0


def test_a_function_that_a_loop_calls_has_frames_of_its_own() -> None:
    inner = loop()
    body = function(
        "body",
        "a limit",
        [
            node("inner While a limit", cond="less", body="double"),
            node("s Sub inner:output:0 limit"),
            node("t PartitionedCall s:z:0", f="square"),
            node("u Add limit t:output:0"),
        ],
        ["u:z:0", "limit"],
    )
    less = function("below", "a limit", [const("h", 40.0), node("l Less a h:output:0")], ["l:z:0"])
    nodes = [x(), const("limit", 20.0), node("y While x limit", cond="below", body="body")]
    # 3 -> 24 -> 4 * 4 + 20 = 36 -> 16 * 16 + 20
    functions = [*inner.library.function, SQUARE, body, less]
    assert run(graph(nodes, *functions), "y:0") == 276.0


def refused(message: GraphDef, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        fb.tensorflow.load(message)
    assert not fb.get_default_graph().operations


def call(name: str) -> NodeDef:
    return node("y PartitionedCall x", f=name)


def test_what_a_body_hands_on() -> None:
    nodes = [
        node("p Identity a"),
        node("q Identity p:output:0"),
        node("late Identity b ^q"),
        node("n Neg b"),
        node("round Identity trip:output:0"),
        node("trip Identity round:output:0"),
        node("none Identity"),
    ]
    texts = ["b", "q:output:0", "q:output:0", "late:output:0", "n:y:0", "trip:output:0", "none:y:0"]
    library = Library(graph([], function("f", "a b", nodes, texts)))
    assert library.body("f", {}).passed() == [1, 0, 0, None, None, None, None]


INVALID: list[tuple[list[FunctionDef], str]] = [
    ([], "'f' is not in the graph's library"),
    ([function("f", "a", [node("y PartitionedCall a", f="f")], ["y:output:0"])], "f -> f"),
    (
        [
            function("f", "a", [node("y g a")], ["y:r0:0"]),
            function("g", "a", [node("y If a a", then_branch="g", else_branch="f")], ["y:r0:0"]),
        ],
        "calls itself",
    ),
    ([function("f", "a b", [], ["a"])], "takes 2 arguments, and is given 1"),
    ([function("f", "a", [], ["b"])], "takes 'b', which it does not have"),
    ([function("f", "a", [node("y Neg z:y:0")], ["y:y:0"])], "takes 'z:y:0'"),
    ([function("f", "a", [node("y Neg a ^z")], ["y:y:0"])], "waits for 'z'"),
    ([function("f", "a", [node("y Unique a")], ["y:nothing:0"])], "which is no output"),
    ([function("f", "a", [node("y Neg a"), node("y Neg a")], ["y:y:0"])], "two nodes of one name"),
    ([SQUARE, SQUARE], "several functions named 'square'"),
    ([function("f", "a", [node("y Neg z:y:0"), node("z Neg y:y:0")], ["y:y:0"])], "wait for each"),
]


@pytest.mark.parametrize(("functions", "text"), INVALID)
def test_functions_that_are_not_valid(functions: list[FunctionDef], text: str) -> None:
    refused(graph([x(), call("f")], *functions), fb.errors.InvalidArgumentError, text)


def test_branches_and_loops_that_do_not_fit() -> None:
    two = function("two", "a", [], ["a", "a"])
    call = node("y If x x", then_branch="square", else_branch="two", Tcond=FLOAT)
    refused(graph([x(), call], SQUARE, two), fb.errors.InvalidArgumentError, "give 2 and 1 values")
    call = node("y While x", cond="square", body="two")
    refused(graph([x(), call], SQUARE, two), fb.errors.InvalidArgumentError, "gives 2 values for 1")
    for line in ("y If", "y Case", "y While x"):
        text = "nothing to choose|names no function"
        refused(graph([x(), node(line)]), fb.errors.InvalidArgumentError, text)


def test_unknown_operations_in_functions_are_named_and_those_of_unused_ones_do_not_matter() -> None:
    strange = function("f", "a", [node("y Strange a")], ["y:y:0"])
    refused(graph([x(), call("f")], strange), fb.errors.UnimplementedError, r"Strange .*'y/y'")
    assert run(graph([x(), call("square")], SQUARE, strange), "y:0") == 9.0


def test_functions_that_multiply_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = [
        function(
            f"f{level}",
            "a",
            [node(f"b f{level + 1} a"), node(f"c f{level + 1} b:r0:0")],
            ["c:r0:0"],
        )
        for level in range(60)
    ]
    last = function("f60", "a", [], ["a"])
    message = graph([x(), call("f0")], *functions, last)
    monkeypatch.setattr(expanding, "MOST_NODES", 1000)
    refused(message, fb.errors.ResourceExhaustedError, "more than 1000 nodes")


def test_a_choice_of_many_among_many_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = " ".join(["x"] * 300)
    choice = node(f"y Case i {inputs}", branches=["f"] * 300)
    large = function("f", " ".join(f"a{place}" for place in range(300)), [], ["a0"])
    monkeypatch.setattr(expanding, "MOST_NODES", 20_000)
    message = graph([x(), node("i Cast x", DstT=INT), choice], large)
    refused(message, fb.errors.ResourceExhaustedError, "more than 20000 nodes")


def test_a_constant_is_not_copied_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    large = function("f", "a", [const("c", 1.0)], ["a"])
    large.node_def[0].attr["value"].tensor.tensor_content = bytes(1000)
    nodes = [x(), *(node(f"y{place} f x") for place in range(20))]
    monkeypatch.setattr(expanding, "MOST_BYTES", 10_000)
    refused(graph(nodes, large), fb.errors.ResourceExhaustedError, "10000 bytes")


def test_a_long_chain_of_functions_is_refused() -> None:
    functions = [
        function(f"f{level}", "a", [node(f"b f{level + 1} a")], ["b:r0:0"]) for level in range(300)
    ]
    message = graph([x(), call("f0")], *functions, function("f300", "a", [], ["a"]))
    refused(message, fb.errors.ResourceExhaustedError, "more than 200 functions")


@settings(max_examples=100)
@given(st.data())
def test_damaged_functions_raise_an_error_of_flowbooks(data: st.DataObject) -> None:
    content = bytearray((DATA / "functions.pb").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with fb.Graph().as_default():
        try:
            fb.tensorflow.load(bytes(content))
        except fb.errors.OpError:
            assert not fb.get_default_graph().operations


@requires(distribution="google-crc32c")
def test_a_saved_model_of_functions_and_its_checkpoint() -> None:
    with np.load(DATA / "later.npz") as file:
        recorded = dict(file)
    model = fb.tensorflow.load(DATA / "later")
    signature = model.signatures["serving_default"]
    with fb.Session() as sess:
        assert sorted(model.restore(sess)) == ["count", "w"]
        for count in (1, 2):
            found = sess.run(signature.outputs, {signature.inputs["x"]: recorded["x"]})
            np.testing.assert_allclose(found["y"], recorded["y"], rtol=1e-5)
            assert found["count"] == count
    assert list(model.inputs) == ["serving_default_x"]
