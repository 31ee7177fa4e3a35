"""Loops and branches as blocks of pictures."""

from typing import Any

import flowbook as fb
from flowbook.graph.model.operation import Operation
from flowbook.widgets.graphs.flow_blocks import (
    BlockKind,
    Pictured,
    pictured,
    plain_name,
    shown_label,
)
from flowbook.widgets.graphs.flow_runs import what_ran
from flowbook.widgets.graphs.payload import graph_payload
from flowbook.widgets.graphs.svg import graph_svg
from tests.widgets.graphs.drawn_graph import boxes, edges
from tests.widgets.graphs.test_graph_payload import Read


def drawn(graph: fb.Graph | None = None) -> tuple[Pictured, dict[str, str]]:
    """How a graph is pictured, and where each operation lies, as a person reads it."""
    operations = (graph or fb.get_default_graph()).operations
    found = pictured(operations)
    where = {
        op.name: " > ".join(map(shown_label, name.split("/")))
        for op, name in zip(operations, found.names, strict=True)
    }
    return found, where


def wires(found: Pictured, op: Operation) -> list[str]:
    return [tensor.name for tensor in found.wires.get(op, op.inputs)]


def named(name: str) -> Operation:
    return fb.get_default_graph().get_operation_by_name(name)


def loop() -> Any:
    x = fb.placeholder(fb.float32, [], name="x")
    w = fb.Variable(2.0, name="w")

    def body(i: fb.Tensor, state: dict[str, fb.Tensor]) -> Any:
        h = fb.cond(state["h"] > 5.0, lambda: state["h"] - w, lambda: state["h"] + x, name="limit")
        return i + 1, {"h": h}

    return fb.while_loop(lambda i, state: i < 7, body, (0, {"h": x}), name="steps")


def test_a_loop_has_its_condition_its_body_and_its_variables() -> None:
    loop()
    found, where = drawn()
    assert where["steps/Less"] == "steps > condition > Less"
    assert where["steps/Less/y"] == "steps > condition > Less > y"
    assert where["steps/Add"] == "steps > body > Add"
    assert where["steps/limit/Add"] == "steps > body > limit > false > Add"
    assert where["steps/limit/Sub"] == "steps > body > limit > true > Sub"
    # A read for the body, which has its name from the variable.
    assert where["w/read_1"] == "steps > body > limit > true > w/read_1"
    assert where["w/read"] == "w > read"
    for name in ("Enter", "Merge", "Switch", "NextIteration", "Exit"):
        assert where[f"steps/{name}"] == f"steps > i > steps/{name}"
        assert where[f"steps/{name}_1"] == f"steps > state.h > steps/{name}_1"
    kinds = {shown_label(path.rpartition("/")[2]): b.kind for path, b in found.blocks.items()}
    assert kinds == {
        "steps": BlockKind.LOOP,
        "condition": BlockKind.PART,
        "body": BlockKind.PART,
        "i": BlockKind.ROLE,
        "state.h": BlockKind.ROLE,
        "limit": BlockKind.BRANCH,
        "true": BlockKind.PART,
        "false": BlockKind.PART,
        "predicate": BlockKind.ROLE,
        "result": BlockKind.ROLE,
    }


def test_lines_pass_by_what_only_routes() -> None:
    loop()
    found, _ = drawn()
    assert wires(found, named("steps/limit/Add")) == ["steps/Switch_1:1", "x:0"]
    assert wires(found, named("steps/limit/Sub")) == ["steps/Switch_1:1", "w/read_1:0"]
    # What makes a part run leads to it.
    assert wires(found, named("steps/pivot")) == ["steps/Less:0"]
    assert wires(found, named("steps/limit/true")) == ["steps/limit/pred_id:0"]
    assert wires(found, named("steps/limit/false")) == ["steps/limit/pred_id:0"]
    assert wires(found, named("steps/limit/pred_id")) == ["steps/Greater:0"]
    assert {op.name for op in found.rounds} == {"steps/NextIteration", "steps/NextIteration_1"}
    types = {op.type for op in found.routing}
    routing = {"Enter", "Exit", "Identity", "LoopCond", "Merge", "NextIteration", "Switch"}
    assert types == routing
    for op in fb.get_default_graph().operations:
        if op not in found.routing:
            assert op.type not in routing - {"Identity"}
            assert not {named(w.rpartition(":")[0]).type for w in wires(found, op)} & {
                "Enter",
                "LoopCond",
            }


def test_the_sides_of_a_case_lie_beside_each_other() -> None:
    n = fb.placeholder(fb.int32, [], name="n")
    x = fb.placeholder(fb.float32, [], name="x")
    fb.switch_case(n, [lambda: fb.exp(x), lambda: fb.sin(x), lambda: fb.cos(x)], name="by_number")
    pairs = [(x < 0, lambda: fb.exp(x)), (x < 1, lambda: fb.sin(x))]
    fb.case(pairs, default=lambda: fb.cos(x), name="by_value")
    found, where = drawn()
    for scope in ("by_number", "by_value"):
        for side, name in enumerate(("Exp", "Sin", "Cos")):
            assert where[f"{scope}/{name}"] == f"{scope} > branch {side} > {name}"
    assert where["by_value/pred_1"] == "by_value > predicate > by_value/pred_1"
    assert wires(found, named("by_value/true_1")) == ["by_value/pred_1:0"]
    assert wires(found, named("by_value/false")) == []  # More is decided there.


def test_gradients_lie_in_a_loop_of_their_own_and_what_they_keep_in_the_first() -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    _, y = fb.while_loop(lambda i, t: i < 4, lambda i, t: (i + 1, fb.sin(t)), (0, x), name="steps")
    fb.gradients(y, [x])
    found, where = drawn()
    backward = next(block for block in found.blocks.values() if block.about)
    assert (backward.kind, backward.about) == (BlockKind.LOOP, "gradient of steps")
    for op in fb.get_default_graph().operations:
        if op.type == "StackPush":
            assert where[op.name].startswith("steps > gradients > ")
        elif op.type in ("StackPop", "Cos"):
            assert where[op.name].startswith("gradients > steps_grad > body > ")
    # Nothing that the first loop takes comes from the scope of the gradients.
    names = dict(zip(fb.get_default_graph().operations, found.names, strict=True))
    for op in names:
        if names[op].startswith("steps/"):
            assert not any(names[t.op].startswith("gradients/") for t in op.inputs), op


def test_gradients_of_a_branch_stay_outside_of_it() -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    y = fb.cond(x > 0, lambda: fb.sin(x), lambda: fb.cos(x), name="choice")
    fb.gradients(y, [x])
    _, where = drawn()
    for name, place in where.items():
        assert place.startswith("gradients") is name.startswith("gradients"), name


def test_what_is_built_by_hand_is_a_loop_too() -> None:
    first = fb.control_flow.enter(0, "by_hand")
    merged = fb.control_flow.merge([first])
    going_on = fb.control_flow.loop_cond(merged.output < 3)
    ended, again = fb.control_flow.switch(merged.output, going_on)
    fb.control_flow.next_iteration(again + 1, merged)
    fb.control_flow.exit(ended)
    _, where = drawn()
    assert where["Less"] == "by_hand > condition > Less"
    assert where["Add"] == "by_hand > body > Add"
    assert where["Merge"] == "by_hand > value 1 > Merge"


def test_switches_by_hand_are_drawn_as_they_are() -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    no, yes = fb.control_flow.switch(x, x > 0)
    fb.control_flow.merge([no, fb.exp(yes)])
    found, where = drawn()
    assert not found.routing
    assert not found.blocks
    assert where["Switch"] == "Switch"


def test_a_graph_read_from_bytes_is_drawn_as_it_was() -> None:
    loop()
    graph = fb.get_default_graph()
    again = fb.Graph.from_bytes(graph.to_bytes())
    assert pictured(again.operations).names == pictured(graph.operations).names


def test_the_payload_names_what_lies_elsewhere() -> None:
    loop()
    graph = fb.get_default_graph()
    read = Read(graph_payload(graph))
    whole = {
        read.strings[name]: node for node, name in enumerate(read.columns["named"]) if name >= 0
    }
    kind, parent = read.columns["kind"], read.columns["parent"]
    labels = read.texts("label")
    assert kind[whole["body of steps"]] == BlockKind.PART
    assert labels[whole["body of steps"]] == "body"
    assert kind[parent[whole["body of steps"]]] == BlockKind.LOOP
    assert labels[whole["w/read_1"]] == "w/read_1"
    assert kind[whole["steps/limit"]] == BlockKind.BRANCH
    add = [op.name for op in graph.operations].index("steps/limit/Add")
    start = read.columns["wireStart"]
    assert start[add + 1] - start[add] == 2
    assert read.columns["routing"].sum() == len(pictured(graph.operations).routing)


def test_all_that_a_loop_is_looked_at_for_stays() -> None:
    # Nothing is a placeholder or leads to a loss: that would stay in any case.
    def body(*parts: fb.Tensor) -> list[fb.Tensor]:
        return [fb.add_n(parts)] * len(parts)

    parts = [fb.zeros([2]) for _ in range(8)]
    fb.while_loop(lambda *parts: parts[0][0] < 9.0, body, parts, name="steps")
    read = Read(graph_payload(fb.get_default_graph()))
    (whole,) = [i for i, kind in enumerate(read.columns["kind"]) if kind == BlockKind.LOOP]
    assert not read.columns["aside"][read.columns["parent"] == whole].any()


def test_a_session_is_asked_or_else_the_latest() -> None:
    n = fb.placeholder(fb.int32, [], name="n")
    last = fb.while_loop(lambda i: i < n, lambda i: i + 1, [0], name="count")[0]
    with fb.Session() as one, fb.Session() as other:
        one.run(last, {n: 1})
        assert what_ran(one.graph) == {}
        other.run(last, {n: 2})
        assert what_ran(one.graph) == {"count": "ran 2 times"}
        assert what_ran(one.graph, one) == {"count": "ran 1 time"}


def test_plain_graphs_have_nothing_of_it() -> None:
    fb.identity(fb.placeholder(fb.float32, [], name="x"))
    assert "wire" not in Read(graph_payload(fb.get_default_graph())).columns


def test_static_pictures_show_blocks_and_how_they_ran() -> None:
    _, last = loop()
    x = named("x").outputs[0]
    fb.cond(last["h"] > 100.0, lambda: last["h"], lambda: fb.exp(last["h"]), name="choice")
    picture = graph_svg(fb.get_default_graph())
    found = boxes(picture)
    assert found["steps"].texts == ["↻ steps", "11 operations"]
    assert found["choice"].texts[0] == "◇ choice"
    # The read in the body has gone with it: nothing leads from the loop to the variable.
    assert ("w", "steps") in edges(picture)
    assert ("steps", "w") not in edges(picture)
    with fb.Session() as sess:
        assert what_ran(sess.graph) == {}
        sess.run(["choice/Merge:0", last], {x: 1.0})
        said = what_ran(sess.graph)
        assert said["steps"] == "ran 7 times"
        assert said["choice"] == "false ran last"
        found = boxes(graph_svg(sess.graph, ran=said))
        assert found["steps"].texts == ["↻ steps", "ran 7 times"]
        assert found["choice"].texts == ["◇ choice", "false ran last"]


def test_the_side_is_told_that_a_case_took() -> None:
    n = fb.placeholder(fb.int32, [], name="n")
    branches = [lambda i=i: fb.constant(i) for i in range(4)]
    y = fb.switch_case(n, branches, name="by_number")
    with fb.Session() as sess:
        for _ in range(2):
            for number in (2, 0, 3, 1, 3, 0):
                sess.run(y, {n: number})
                assert what_ran(sess.graph) == {"by_number": f"branch {number} ran last"}


def test_names_without_their_own_parts() -> None:
    loop()
    found, _ = drawn()
    path = next(p for p, b in found.blocks.items() if b.name == "steps/limit")
    assert plain_name(path) == "steps/limit"


def test_a_function_is_one_block_with_its_arguments() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")

    @fb.function(inline=False)
    def kept(a: fb.Tensor) -> fb.Tensor:
        return fb.tanh(a) * 2.0

    @fb.function
    def copied(a: fb.Tensor) -> fb.Tensor:
        return fb.while_loop(lambda b: b[0] < 9.0, lambda b: b + kept(a), (a,), name="steps")

    y = copied(kept(kept(x)))
    fb.gradients(y, x)
    found, where = drawn()
    for name in ("functions/kept", "functions/copied"):
        assert found.blocks[name].kind is BlockKind.FUNCTION
    assert found.blocks["functions/kept_grad"].about == "gradient of functions/kept"
    assert where["functions/kept/a"] == "functions > kept > a"
    assert where["functions/kept/Tanh"] == "functions > kept > Tanh"
    assert where["functions/kept"] == "functions > kept > functions/kept"
    assert where["kept_1"] == "kept_1"
    assert found.blocks["functions/copied/steps"].kind is BlockKind.LOOP
    assert found.blocks["copied/steps"].kind is BlockKind.LOOP
    assert wires(found, named("functions/kept/Tanh")) == ["functions/kept/a:0"]
    # Neither what a body begins with nor what takes its results is drawn.
    assert {named("functions/kept/start"), named("functions/kept")} <= found.routing
    assert named("functions/kept/a") not in found.routing
    Read(graph_payload(fb.get_default_graph()))
    assert "copied" in graph_svg(fb.get_default_graph())


def test_each_call_of_a_function_is_a_block_that_leads_to_the_one_body() -> None:
    x = fb.placeholder(fb.float32, [2], name="x")

    @fb.function(inline=False)
    def step(a: fb.Tensor) -> fb.Tensor:
        return fb.tanh(a) * 2.0

    fb.gradients(step(step(x)), x)
    graph = fb.get_default_graph()
    found, _ = drawn()
    wanted = {"step": "functions/step", "step_1": "functions/step"}
    wanted |= {f"gradients/{name}_grad/gradient": "functions/step_grad" for name in wanted}
    assert {op.name: path for op, path in found.bodies.items()} == wanted
    read = Read(graph_payload(graph))
    names = read.names()
    for i, op in enumerate(graph.operations):
        body = read.columns["body"][i]
        assert (names[body] if body >= 0 else None) == wanted.get(op.name)
        assert (read.columns["kind"][i] == BlockKind.CALL) == (op.name in wanted)
    found = boxes(graph_svg(graph))
    for call in ("step", "step_1"):
        assert found[call].texts == [f"ƒ {call}", "call of step"]
    assert "functions" in found


def test_a_template_is_one_block_that_its_further_calls_lead_to() -> None:
    model = fb.template(lambda x: fb.layers.dense(x, 2, name="layer"), "model")
    x = fb.placeholder(fb.float32, [None, 3], name="x")
    once = model(x)
    assert pictured(x.graph.operations).blocks == {}
    model(x * 2.0)
    with fb.name_scope("model_2"):
        fb.exp(once, name="other")
    model(fb.exp(x))
    found = pictured(x.graph.operations)
    assert {path: (block.kind, block.about) for path, block in found.blocks.items()} == {
        "model": (BlockKind.FUNCTION, "used 3 times"),
        "model_1": (BlockKind.CALL, "call of model"),
        "model_3": (BlockKind.CALL, "call of model"),
    }
    assert found.calls == {"model_1": "model", "model_3": "model"}
    faces = boxes(graph_svg(x.graph))
    assert faces["model"].texts == ["ƒ model", "used 3 times"]
    for call in ("model_1", "model_3"):
        assert faces[call].texts == [f"ƒ {call}", "call of model"]
    read = Read(graph_payload(x.graph))
    names = read.names()
    body = read.columns["body"][names.index("model_1")]
    assert names[body] == "model"


def test_a_scope_that_a_call_had_and_something_else_has_now_is_no_call() -> None:
    model = fb.template(lambda x: x * fb.Variable(2.0, name="factor"), "model")
    x = fb.placeholder(fb.float32, [], name="x")
    model(x)
    model(x)
    for op in [op for op in x.graph.operations if op.name.startswith("model_1/")]:
        x.graph.members.retire(op)
    with fb.name_scope("model_1/"):
        fb.exp(x)
    assert pictured(x.graph.operations).blocks == {}
