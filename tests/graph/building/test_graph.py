"""Names, scopes, look-up, finalizing, threads, and Python's operators where they are refused."""

import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.building import verify

HERE = "test_graph.py"


def x() -> Any:
    return fb.placeholder(fb.float32, [2, 3], name="x")


# Names


def test_an_operation_is_named_after_its_type() -> None:
    assert [fb.no_op().name for _ in range(3)] == ["NoOp", "NoOp_1", "NoOp_2"]


def test_a_name_taken_gets_a_suffix_that_is_free() -> None:
    names = [fb.no_op(name=n).name for n in ("a_1", "a", "a", "a", "a_1")]
    assert names == ["a_1", "a", "a_2", "a_3", "a_1_1"]


def test_constants_made_from_values_are_named_after_their_argument() -> None:
    y = fb.add(x(), 1.0, name="y")
    assert [t.name for t in y.op.inputs] == ["x:0", "y/y:0"]


def test_constants_in_lists_are_numbered() -> None:
    total = fb.add_n([x(), np.zeros([2, 3], np.float32)], name="total")
    assert total.op.inputs[1].name == "total/inputs_1:0"


@pytest.mark.parametrize("name", ["", "a b", "-a", "a:0", "a@1", "é", "/a", "a\n"])
def test_what_is_not_a_name_is_refused(name: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="not a valid name"):
        fb.no_op(name=name)


def test_a_name_begins_with_an_underscore_only_inside_a_scope() -> None:
    with fb.name_scope("a"):
        assert fb.no_op(name="_b").name == "a/_b"
        with fb.name_scope("_c") as scope:
            assert scope == "a/_c/"
    with pytest.raises(fb.errors.InvalidArgumentError, match="not a valid name"):
        fb.no_op(name="_b")
    with (
        pytest.raises(fb.errors.InvalidArgumentError, match="not a valid name"),
        fb.name_scope("a"),
    ):
        fb.no_op(name="_b/")
    graph = fb.Graph.from_bytes(fb.get_default_graph().to_bytes())
    assert graph.has_operation("a/_b")


def test_whether_a_tensor_holds_a_value_is_asked_in_the_run() -> None:
    for item in (x(), fb.Variable([1.0])):
        with pytest.raises(fb.errors.InvalidTypeError, match="is not known") as caught:
            1.0 in item  # noqa: B015
        assert "fb.reduce_any(fb.equal" in str(caught.value)


@pytest.mark.parametrize("name", [3, b"a", ["a"]])
def test_a_name_is_a_string(name: Any) -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="a name is a string"):
        fb.no_op(name=name)
    with pytest.raises(fb.errors.InvalidTypeError, match="a name is a string"), fb.name_scope(name):
        pass


def test_a_refused_operation_leaves_nothing_behind() -> None:
    before = x().graph.to_bytes()
    with pytest.raises(fb.errors.InvalidArgumentError):
        fb.add(fb.get_default_graph().get_tensor_by_name("x:0"), np.ones([7]), name="y")
    assert fb.get_default_graph().to_bytes() == before


# Scopes


def test_name_scopes_nest() -> None:
    with fb.name_scope("a") as a, fb.name_scope("b") as b:
        inner = fb.no_op(name="c")
        with fb.name_scope(None) as top:
            outer = fb.no_op(name="c")
    assert (a, b, top) == ("a/", "a/b/", "")
    assert (inner.name, outer.name) == ("a/b/c", "c")


def test_a_name_scope_entered_again_gets_a_suffix_unless_it_ends_with_a_slash() -> None:
    with fb.name_scope("a") as first:
        fb.no_op(name="n")
    with fb.name_scope("a") as second:
        pass
    with fb.name_scope(first) as again:
        op = fb.no_op(name="n")
    assert (first, second, again) == ("a/", "a_1/", "a/")
    assert op.name == "a/n_1"


def test_a_function_with_a_default_name_scopes_what_it_builds() -> None:
    def half(x: Any, name: str | None = None) -> Any:
        with fb.name_scope(name, "half", [x]) as scope:
            return fb.multiply(x, 0.5, name=scope)

    graph = fb.Graph()
    with graph.as_default():
        x = fb.constant(1.0, name="x")
    # Called in another graph, it builds in the one of its argument.
    assert [half(x).name, half(x, "mine").name, half(x).name] == ["half:0", "mine:0", "half_1:0"]
    assert half(x).graph is graph
    assert half(3.0).graph is fb.get_default_graph()
    with fb.name_scope(None, "s"), fb.name_scope("", "unused") as top:
        assert top == ""


def test_scopes_and_operations_share_their_names() -> None:
    fb.no_op(name="a")
    with fb.name_scope("a") as scope:
        assert scope == "a_1/"
    with fb.name_scope("b"):
        pass
    assert fb.no_op(name="b").name == "b_1"


def test_a_scope_is_left_when_its_block_fails() -> None:
    with pytest.raises(KeyError), fb.name_scope("a"), fb.device("/device:cpu:0"):
        raise KeyError
    op = fb.no_op(name="n")
    assert (op.name, op.device) == ("n", "")


def test_control_dependencies_add_up_and_are_cleared() -> None:
    a, b = fb.no_op(name="a"), fb.constant(1.0, name="b")
    with fb.control_dependencies([a]):
        one = fb.no_op()
        with fb.control_dependencies([b, a]):
            two = fb.no_op()
            with fb.control_dependencies(None):
                none = fb.no_op()
    assert one.control_inputs == (a,)
    assert two.control_inputs == (a, b.op)
    assert none.control_inputs == ()
    assert fb.no_op().control_inputs == ()


def test_a_variable_stands_for_its_operation_in_control_dependencies() -> None:
    W = fb.Variable(1.0, name="W")
    with fb.control_dependencies([W, "W/Assign"]):
        assert fb.no_op().control_inputs == (W.op, W.initializer)


def test_a_variable_is_made_outside_of_control_dependencies() -> None:
    with fb.control_dependencies([fb.no_op()]):
        W = fb.Variable(1.0)
    assert W.op.control_inputs == W.initializer.control_inputs == ()


@pytest.mark.parametrize("wrong", [3, [3], [[1.0]]])
def test_control_dependencies_are_operations(wrong: Any) -> None:
    with pytest.raises(fb.errors.InvalidTypeError), fb.control_dependencies(wrong):
        pass


@pytest.mark.parametrize("one", [x, lambda: fb.Variable([1.0]), str, dict, fb.no_op])
def test_control_dependencies_are_a_list(one: Callable[[], Any]) -> None:
    with (
        pytest.raises(fb.errors.InvalidTypeError, match="takes a list") as caught,
        fb.control_dependencies(one()),
    ):
        pass
    assert caught.value.hint is not None
    assert "[x]" in caught.value.hint


def test_an_operation_that_an_interrupt_kept_from_joining_does_not_run() -> None:
    class Interrupted(dict[str, Any]):
        def __setitem__(self, name: str, operation: Any) -> None:
            raise KeyboardInterrupt

    graph = fb.get_default_graph()
    operations = graph.members.operations
    graph.members.operations = Interrupted(operations)
    with pytest.raises(KeyboardInterrupt):
        fb.random_uniform([2], name="noise")
    graph.members.operations = operations
    assert graph.stateful_operations() == []
    assert fb.random_uniform([2], name="other").op in graph.stateful_operations()


def test_a_name_scope_looks_at_what_it_is_given() -> None:
    with fb.Graph().as_default() as graph:
        values = [
            fb.constant(1.0),
            fb.Variable(1.0),
            fb.SparseTensor([[0]], [1.0], [1]),
            fb.no_op(),
        ]
    for value in values:
        with fb.name_scope("s", values=[3.0, value]):
            assert fb.get_default_graph() is graph
    with pytest.raises(fb.errors.InvalidArgumentError, match="different graphs"):
        fb.name_scope("s", values=[*values, fb.constant(1.0)]).__enter__()
    with pytest.raises(fb.errors.InvalidTypeError, match="a name is a string"):
        fb.name_scope("s", values).__enter__()


def test_unknown_names_are_key_errors() -> None:
    graph = fb.get_default_graph()
    for find in (graph.get_operation_by_name, lambda name: graph.get_tensor_by_name(f"{name}:0")):
        with pytest.raises(KeyError) as caught:
            find("nothing")
        assert str(caught.value).startswith("the graph has no operation 'nothing'")


def test_device_scopes_refine_each_other() -> None:
    with fb.device("/job:worker/task:1"):
        outer = fb.no_op()
        with fb.device("/gpu:2"):
            both = fb.no_op()
            with fb.device("/cpu"):
                other_kind = fb.no_op()
            with fb.device(None):
                nothing = fb.no_op()
    assert outer.device == "/job:worker/task:1"
    assert both.device == "/job:worker/task:1/device:gpu:2"
    assert other_kind.device == "/job:worker/task:1/device:cpu"
    assert nothing.device == ""


def test_an_index_holds_within_its_kind() -> None:
    with fb.device("/device:gpu:7"):
        with fb.device("/device:gpu:*"):
            same_kind = fb.no_op()
        with fb.device("cpu:*"):
            other_kind = fb.no_op()
    assert same_kind.device == "/device:gpu:7"
    assert other_kind.device == "/device:cpu"


def test_the_full_names_of_tensorflow_are_names() -> None:
    with fb.device("/job:localhost/replica:0/task:0/device:CPU:0"):
        x = fb.constant(1.0)
    assert x.device == "/job:localhost/task:0/device:cpu:0"
    with pytest.raises(fb.errors.InvalidArgumentError, match="names a replica"):
        fb.device("/job:worker/replica:1").__enter__()


def test_one_device_at_a_time() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="names two devices"):
        fb.device("/device:gpu:2/cpu:0").__enter__()
    for twice in ("/job:a/job:b", "/task:1/task:2/cpu:0"):
        with pytest.raises(fb.errors.InvalidArgumentError, match=f"'{twice}' names two"):
            fb.device(twice).__enter__()


def test_a_wrong_name_is_told_as_it_was_given() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"^'cpu:x' is not a device name"):
        fb.device("cpu:x").__enter__()


@pytest.mark.parametrize(
    "name",
    [
        *("gpu0", "/device:gpu:x", "/task:a", "/device:cpu:0 "),
        *(f"/{part}:{'9' * 5000}" for part in ("task", "device:gpu")),
    ],
    ids=lambda name: name[:20],
)
def test_a_device_has_a_name_of_its_own_form(name: str) -> None:
    with (
        pytest.raises(fb.errors.InvalidArgumentError, match="is not a device name"),
        fb.device(name),
    ):
        pass


def test_a_device_is_named_by_a_string() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="named by a string"), fb.device(0):
        pass


def test_a_function_chooses_devices() -> None:
    def choose(op: fb.Operation) -> str | None:
        return {"Exp": "/cpu:1", "Neg": "/device:gpu"}.get(op.type)

    x = fb.constant(1.0)
    with fb.device("/job:worker/task:2/cpu:0"), fb.device(choose):
        exp, neg, log = fb.exp(x), fb.negative(x), fb.log(x)
        with fb.device("/task:3"):
            refined = fb.exp(x)
        with fb.device(lambda op: "/task:4"):
            twice = fb.exp(x)
        with fb.device(None):
            free = fb.exp(x)
        with fb.colocate_with(neg):
            beside = fb.exp(x)
    assert exp.device == "/job:worker/task:2/device:cpu:1"
    assert neg.device == "/job:worker/task:2/device:gpu"
    assert log.device == "/job:worker/task:2/device:cpu:0"
    assert refined.device == "/job:worker/task:3/device:cpu:1"
    assert twice.device == "/job:worker/task:4/device:cpu:1"
    assert free.device == ""
    assert beside.device == neg.device


@pytest.mark.parametrize(("choice", "problem"), [(3, "named by a string"), ("?", "not a device")])
def test_a_function_that_chooses_no_device_builds_nothing(choice: Any, problem: str) -> None:
    x, graph = fb.constant(1.0), fb.get_default_graph()
    before = len(graph.operations)
    with fb.device(lambda op: choice), pytest.raises(fb.errors.OpError, match=problem):
        fb.exp(x)
    assert len(graph.operations) == before


def test_what_is_built_in_an_init_scope_waits_for_nothing() -> None:
    first = fb.no_op()
    with fb.name_scope("a"), fb.device("/device:cpu:0"), fb.control_dependencies([first]):
        with fb.init_scope():
            inside = fb.no_op(name="inside")
        outside = fb.no_op()
    assert (inside.control_inputs, inside.name) == ((), "a/inside")
    assert inside.device == "/device:cpu:0"
    assert outside.control_inputs == (first,)


def test_colocation_adds_up() -> None:
    a, b = fb.constant(1.0), fb.constant(2.0)
    with fb.colocate_with(a), fb.colocate_with(b), fb.colocate_with(a):
        op = fb.no_op()
    assert op.colocation == (a.op, b.op)


def test_colocation_overrides_the_device_around_it() -> None:
    a = fb.constant(1.0)
    with fb.device("/device:gpu:1"):
        b = fb.constant(1.0)
        with fb.colocate_with(a):
            beside_a = fb.no_op()
            with fb.device("/task:0"):
                inside = fb.no_op()
    with fb.device("/device:gpu:0"), fb.colocate_with(b):
        beside_b = fb.no_op()
    assert [op.device for op in (beside_a, inside, beside_b)] == ["", "/task:0", "/device:gpu:1"]


@pytest.mark.parametrize("request_", ["", "/device:gpu:1"])
def test_a_write_follows_its_variable(request_: str) -> None:
    with fb.device(request_ or None):
        W = fb.Variable([1.0, 2.0])
    other = fb.constant(1.0)
    with fb.device("/device:gpu:0"):
        writes = [fb.assign(W, [3.0, 4.0]), fb.scatter_add(W, [0], [1.0])]
        with fb.colocate_with(other):
            writes.append(fb.assign_add(W, [1.0, 1.0]))
    for write in writes:
        assert (write.op.device, write.op.colocation) == (request_, (W.op,))


def test_containers_hold_resources_only() -> None:
    with fb.container("shared"):
        W = fb.Variable(1.0)
        with fb.container(""):
            own = fb.Variable(1.0)
    assert W.op.container == "shared"
    assert W.initializer.container == W.value.op.container == ""
    assert own.op.container == ""
    with pytest.raises(fb.errors.InvalidTypeError, match="named by a string"), fb.container(None):
        pass


def test_a_scope_belongs_to_its_graph() -> None:
    other = fb.Graph()
    with fb.name_scope("a"), fb.device("/device:cpu:0"), other.as_default():
        op = fb.no_op(name="n")
    assert (op.name, op.device) == ("n", "")


# Which graph


def test_the_default_graph_is_the_innermost() -> None:
    outer, inner = fb.Graph(), fb.Graph()
    process = fb.get_default_graph()
    with outer.as_default() as entered:
        assert entered is outer is fb.get_default_graph()
        with inner.as_default():
            assert fb.no_op().graph is inner
        assert fb.get_default_graph() is outer
    assert fb.get_default_graph() is process


def test_reset_gives_a_new_default_graph() -> None:
    before = fb.no_op().graph
    fb.reset_default_graph()
    assert fb.get_default_graph() is not before
    assert fb.get_default_graph().operations == []
    with (
        fb.Graph().as_default(),
        pytest.raises(fb.errors.FailedPreconditionError, match="as_default"),
    ):
        fb.reset_default_graph()


def test_an_operation_joins_the_graph_of_its_inputs() -> None:
    with fb.Graph().as_default() as graph:
        a = x()
    assert (a + 1.0).graph is graph
    assert fb.get_default_graph().operations == []


def test_a_thread_has_defaults_of_its_own() -> None:
    found: list[fb.Graph] = []
    with fb.Graph().as_default():
        in_thread(lambda: found.append(fb.get_default_graph()))
    assert found == [fb.get_default_graph()]


@pytest.mark.parametrize(
    "mix",
    [
        lambda a, b: a + b,
        lambda a, b: fb.add_n([a, b]),
        lambda a, b: fb.add(a, [b, b]),
        lambda a, b: fb.gradients(a, [b]),
    ],
    ids=["operator", "list", "packed", "gradients"],
)
def test_mixing_graphs_names_where_each_was_made(mix: Callable[[Any, Any], Any]) -> None:
    ours = fb.Graph()
    theirs = fb.Graph()
    with ours.as_default():
        a = fb.constant(1.0, name="a")
    with theirs.as_default():
        b = fb.constant(1.0, name="b")
    with pytest.raises(fb.errors.InvalidArgumentError, match="different graphs") as caught:
        mix(a, b)
    text = str(caught.value)
    assert ours.site.line < theirs.site.line
    assert f"a:0 is in the graph made at {HERE}, line {ours.site.line}" in text
    assert f"b:0 is in the graph made at {HERE}, line {theirs.site.line}" in text
    assert "hint: build both in one graph" in text


@pytest.mark.parametrize("scope", [fb.colocate_with, lambda op: fb.control_dependencies([op])])
def test_scopes_do_not_mix_graphs(scope: Callable[[Any], Any]) -> None:
    with fb.Graph().as_default():
        a = fb.constant(1.0, name="a")
    with (
        pytest.raises(fb.errors.InvalidArgumentError, match="a is in the graph made at") as caught,
        scope(a),
    ):
        pass
    assert str(caught.value).count(f"{HERE}, line ") == 2


# Looking up


def test_operations_come_in_the_order_of_their_construction() -> None:
    y = x() + 1.0
    assert [op.name for op in y.graph.operations] == ["x", "Add/y", "Add"]


def test_look_up_by_name() -> None:
    y = fb.negative(x(), name="y")
    graph = y.graph
    assert graph.get_operation_by_name("y") is y.op
    assert graph.get_tensor_by_name("y:0") is y
    assert graph.as_operation("y") is graph.as_operation("y:0") is graph.as_operation(y) is y.op
    assert graph.as_operation(y.op) is y.op


def test_what_is_not_there_is_not_found() -> None:
    graph = fb.negative(x(), name="layer/output").graph
    with pytest.raises(fb.errors.NotFoundError, match="did you mean 'layer/output'"):
        graph.get_operation_by_name("layer/outptu")
    with pytest.raises(fb.errors.NotFoundError, match="it has 2 operations"):
        graph.get_operation_by_name("qqq")
    with pytest.raises(fb.errors.NotFoundError, match="has 1 output"):
        graph.get_tensor_by_name("x:1")
    with pytest.raises(fb.errors.InvalidArgumentError, match="did you mean 'x:0'"):
        graph.get_tensor_by_name("x")
    for name in ("x:", ":0", "x:-1", "x:a", "x:²", ""):
        with pytest.raises(fb.errors.OpError):
            graph.get_tensor_by_name(name)


@pytest.mark.parametrize("wrong", [None, 3, b"x"])
def test_look_up_takes_strings(wrong: Any) -> None:
    graph = fb.get_default_graph()
    for look_up in (graph.get_operation_by_name, graph.get_tensor_by_name, graph.as_operation):
        with pytest.raises(fb.errors.InvalidTypeError):
            look_up(wrong)


def test_consumers_come_in_the_order_of_their_construction_as_the_graph_grows() -> None:
    a = x()
    assert a.consumers() == []
    b = fb.add(a, a)
    assert a.consumers() == [b.op]
    c, d = fb.negative(b), fb.negative(a)
    assert a.consumers() == [b.op, d.op]
    assert b.consumers() == [c.op]
    a.graph.members.retire(d.op)
    assert a.consumers() == [b.op]


def test_variables_are_listed_in_order_and_by_trainability() -> None:
    a, b = fb.Variable(1.0), fb.Variable(2.0, trainable=False)
    graph = fb.get_default_graph()
    assert graph.variables() == [a, b]
    assert graph.variables(trainable=True) == [a]
    assert graph.variables(trainable=False) == [b]
    assert graph.variable_of(a.op) is a
    assert graph.variable_of(a.initializer) is None


def test_texts_name_what_they_show() -> None:
    a = x()
    assert repr(a) == "<Tensor 'x:0' shape=[2, 3] dtype=float32>"
    assert repr(a.op) == "<Operation 'x' type=Placeholder>"
    assert repr(a.graph).startswith("<Graph of 1 operation, made at ")


# What TensorFlow 1 calls otherwise


@pytest.mark.parametrize(
    ("use", "instead"),
    [
        (lambda a: a.op.run(), "sess.run"),
        (lambda a: a.op.get_attr("T"), "attributes"),
        (lambda a: a.op.nothing, "'Operation' object has no attribute 'nothing'$"),
        (lambda a: a.shape.ndims, "shape.rank"),
        (lambda a: a.shape.merge_with([2]), "shape.merge"),
        (lambda a: a.shape.nothing, "'Shape' object has no attribute 'nothing'$"),
        (lambda a: a.graph.unique_name("a"), "fb.name_scope"),
    ],
)
def test_a_missing_name_says_what_there_is(use: Callable[[Any], Any], instead: str) -> None:
    with pytest.raises(AttributeError, match=instead):
        use(x())


# Finalizing


@pytest.mark.parametrize(
    "change",
    [
        lambda a: fb.no_op(),
        lambda a: a + 1.0,
        lambda a: fb.Variable(1.0),
        lambda a: fb.name_scope("s").__enter__(),
        lambda a: fb.gradients(a, a),
    ],
    ids=["operation", "operator", "variable", "scope", "gradients"],
)
def test_a_finalized_graph_does_not_change(change: Callable[[Any], Any]) -> None:
    with fb.Graph().as_default() as graph:
        a = x()
        graph.finalize()
        before = graph.to_bytes()
        with pytest.raises(
            fb.errors.FailedPreconditionError, match=f"made at {HERE}, line .* is finalized"
        ):
            change(a)
        assert graph.to_bytes() == before
        assert graph.get_tensor_by_name("x:0") is a


# Threads


def in_thread(work: Callable[[], Any]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_threads_build_at_once_with_scopes_of_their_own() -> None:
    graph = fb.Graph()
    start = threading.Barrier(8)
    failures: list[BaseException] = []

    def build(number: int) -> None:
        try:
            start.wait()
            with graph.as_default(), fb.name_scope(f"t{number}"), fb.device(f"/task:{number}"):
                last = fb.constant(0.0)
                for _ in range(100):
                    with fb.name_scope("step"), fb.control_dependencies([last]):
                        last = fb.add(last, 1.0)
                fb.Variable(last)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=build, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    verify.check(graph)
    assert len(graph.operations) == 8 * (1 + 200 + 3)
    for op in graph.operations:
        thread_scope = op.name.split("/")[0]
        assert op.device in ("", f"/task:{thread_scope[1:]}")
        assert all(t.name.startswith(f"{thread_scope}/") for t in op.inputs)
    assert len(graph.variables()) == 8


# Python's operators where a graph cannot follow


def test_a_tensor_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match=r"(?s)x:0 has no truth value.*fb\.cond.*fb\.where"):
        bool(x())
    with pytest.raises(TypeError, match="no truth value"):
        assert x() > 0.0
    with pytest.raises(TypeError, match="no truth value"):
        bool(fb.Variable(1.0))


def test_a_tensor_of_known_length_is_iterated_over() -> None:
    a = x()
    assert len(a) == 2
    assert [row.shape for row in a] == [[3], [3]]


@pytest.mark.parametrize(
    ("shape", "why"),
    [([], "is a scalar"), ([None, 3], "only in the run"), (None, "only in the run")],
)
def test_a_tensor_of_unknown_length_is_not(shape: Any, why: str) -> None:
    a = fb.placeholder(fb.float32, shape, name="a")
    with pytest.raises(TypeError, match=f"a:0 .* cannot be iterated over: it .*{why}"):
        iter(a)
    with pytest.raises(TypeError, match="has no length before the run"):
        len(a)


@pytest.mark.parametrize("convert", [np.asarray, np.array, float, int, operator.index])
def test_a_tensor_has_no_values_for_numpy_or_python(convert: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="symbolic and has no values"):
        convert(fb.placeholder(fb.float32, [], name="a"))


def test_numpy_leaves_operators_to_tensors() -> None:
    a = x()
    for y in (np.ones(3) * a, np.float32(2) - a, np.ones([2, 2], np.float32) @ a):
        assert isinstance(y, fb.Tensor)
        assert y.dtype is fb.float32


def test_equality_is_identity() -> None:
    a, b = x(), x()
    assert a == a
    assert a != b
    assert len({a, b, a}) == 2


def test_tensorflows_names_give_flowbooks() -> None:
    with pytest.raises(AttributeError, match=r"sess\.run"):
        x().eval()
    with pytest.raises(AttributeError, match=r"sess\.run"):
        fb.Variable(1.0).eval()
    with pytest.raises(AttributeError, match=r"fb.assign\("):
        fb.Variable(1.0).assign(2.0)


def test_errors_say_where_the_inputs_were_defined() -> None:
    a = fb.placeholder(fb.float32, [2, 3], name="a")
    b = fb.placeholder(fb.float32, [4], name="b")
    with pytest.raises(fb.errors.InvalidArgumentError) as caught, fb.name_scope("s"):
        fb.add(a, b, name="y")
    text = str(caught.value)
    assert text.startswith("Add 's/y': shapes [2, 3] and [4] do not broadcast: 3 against 4")
    assert f"defined at {HERE}, line " in text
    assert 'fb.add(a, b, name="y")' in text
    assert f"a:0 float32 [2, 3] ({HERE}, line {a.op.site.line})" in text
    assert f"b:0 float32 [4] ({HERE}, line {b.op.site.line})" in text


def test_a_list_without_tensors_has_no_dtype() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="AddN: a list is empty"):
        fb.add_n([])


def test_of_an_unknown_shape_every_part_is_unknown() -> None:
    unknown = fb.Shape(None)
    assert unknown[0] is None
    assert unknown[1:3] == unknown
    assert fb.Shape([2, None])[1] is None
    with pytest.raises(IndexError):
        fb.Shape([2])[1]


@pytest.mark.parametrize(
    ("find", "said"),
    [
        (lambda: fb.float32.as_numpy_dtype, "dtype.numpy"),
        (lambda: fb.float32.base_dtype, "the dtype itself"),
        (lambda: fb.Shape([1]).with_rank_at_least, "shape.rank"),
    ],
)
def test_what_dtypes_shapes_and_variables_have_in_tensorflow(find: Any, said: str) -> None:
    with pytest.raises((AttributeError, TypeError)) as caught:
        find()
    assert said in str(caught.value)


def test_variables_of_a_scope() -> None:
    graph = fb.get_default_graph()
    for name in ("D", "D2", "D"):
        with fb.name_scope(name):
            fb.Variable(1.0, name="w")
            fb.Variable(1.0, name="n", trainable=False)
    found = {scope: [v.op.name for v in graph.variables(True, scope)] for scope in ("", "D", "D/")}
    assert found == {"": ["D/w", "D2/w", "D_1/w"], "D": ["D/w"], "D/": ["D/w"]}
    assert [v.op.name for v in graph.variables(scope="D_1")] == ["D_1/w", "D_1/n"]
    assert graph.variables(scope="nothing") == []
