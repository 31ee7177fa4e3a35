"""Public functions: their errors say what was called and where, and show users' frames alone."""

from __future__ import annotations

import inspect
import pickle
import typing
from collections.abc import Callable
from traceback import extract_tb
from types import TracebackType
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.definition.public import public

HERE = "test_public.py"

CALLS = [
    pytest.param("Concat", lambda: fb.concat([[1]], "rows"), id="operation"),
    pytest.param("image.rot90", lambda: fb.image.rot90(3), id="several-operations"),
    pytest.param("SparseTensor.from_value", lambda: fb.sparse.expand_dims(3, 0), id="inner"),
    pytest.param("StridedSlice", lambda: fb.zeros([2])["a"], id="operator"),
    pytest.param(
        "Queue.enqueue", lambda: fb.FIFOQueue(2, fb.int32, shapes=[[]]).enqueue({}), id="method"
    ),
    pytest.param("Variable", lambda: fb.Variable(object()), id="class"),
]


def files(traceback: TracebackType | None) -> list[str]:
    """Return the names of the files whose frames a traceback shows."""
    return [frame.filename.rpartition("/")[2] for frame in extract_tb(traceback)]


@pytest.mark.parametrize(("what", "call"), CALLS)
def test_an_error_says_what_was_called_and_where(what: str, call: Callable[[], Any]) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError) as caught:
        call()
    assert str(caught.value).startswith(f"{what}: ")
    assert f"defined at {HERE}, line {call.__code__.co_firstlineno}:" in str(caught.value)


def test_frames_of_the_function_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError) as caught:
        fb.image.rot90(3)
    assert files(caught.tb) == [HERE, "public.py"]
    monkeypatch.setattr(fb.options, "full_tracebacks", True)
    with pytest.raises(fb.errors.InvalidArgumentError) as caught:
        fb.image.rot90(3)
    assert len(files(caught.tb)) > 2


def test_what_does_not_fit_into_memory_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(np, "arange", Mock(side_effect=MemoryError("Unable to allocate 16.0 GiB")))
    with pytest.raises(fb.errors.ResourceExhaustedError, match=r"hann_window: .*16\.0 GiB"):
        fb.signal.hann_window(2**31)


def test_frames_of_what_a_user_gave_stay() -> None:
    def change(values: fb.Tensor) -> fb.Tensor:
        return fb.concat([values], "rows")  # type: ignore[arg-type]

    with pytest.raises(fb.errors.InvalidArgumentError, match="Concat: ") as caught:
        fb.sparse.map_values(change, fb.sparse.eye(2))
    assert files(caught.tb).count(HERE) == 2


def test_what_two_namespaces_name_is_one_function() -> None:
    made: dict[Any, Any] = {}
    for module in (fb, fb.image, fb.layers, fb.losses, fb.nn, fb.signal, fb.sparse, fb.train):
        for name in dir(module):
            function = getattr(module, name)
            inner = getattr(function, "__wrapped__", None)
            if inner is not None:
                assert made.setdefault(inner, function) is function, name
    assert made


def test_public_functions_are_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(fb.concat)) is fb.concat


def test_a_name_may_be_given_by_its_place() -> None:
    x, signal, text = fb.constant([1.0, 2.0]), fb.constant([1j, 2.0]), fb.constant("text")
    built = [
        fb.identity(x, "named"),
        fb.no_op("named"),
        fb.add(x, x, "named"),
        fb.matrix_solve([[1.0]], [[1.0]], True, "named"),
        fb.linspace(0.0, 1.0, 3, "named"),
        fb.fft(signal, "named"),
        fb.fft(signal, "named", "ortho"),
        fb.strings.length(text, "named", "UTF8_CHAR"),
        fb.strings.substr(text, 1, 2, "named", unit="UTF8_CHAR"),
        fb.segment_sum(x, [0, 1], "named"),
    ]
    names = [each.name if isinstance(each, fb.Operation) else each.op.name for each in built]
    assert names == ["named", *[f"named_{i}" for i in range(1, len(built))]]
    assert built[6].op.attributes["norm"] == "ortho"
    assert [each.op.attributes["unit"] for each in built[7:9]] == ["UTF8_CHAR"] * 2
    assert fb.square(x, None).op.name == "Square"


def test_a_name_may_be_what_an_attribute_admits_where_that_is_not_meant() -> None:
    assert fb.fft([1j], name="ortho").op.name == "ortho"
    assert fb.fft([1j], "forward", "ortho").op.name == "forward"
    assert fb.fft([1j], "backward", norm="backward").op.name == "backward"


@pytest.mark.parametrize(
    ("called", "flag", "build"),
    [
        ("Transpose", "conjugate", lambda: fb.transpose([[1j]], [1, 0], "x")),
        ("MatrixTranspose", "conjugate", lambda: fb.matrix_transpose([[1j]], "x")),
        ("nn.moments", "keepdims", lambda: fb.nn.moments([[1.0]], [1], "x")),
        ("Sum", "keepdims", lambda: fb.reduce_sum([[1.0]], [1], keepdims="x")),
        ("Cumsum", "exclusive", lambda: fb.cumsum([1.0], 0, "x")),
        ("Variable", "trainable", lambda: fb.Variable(1.0, "x")),
    ],
)
def test_a_name_is_no_bool(called: str, flag: str, build: Callable[[], Any]) -> None:
    """TensorFlow 1 has the name in the place of some."""
    with pytest.raises(fb.errors.InvalidTypeError) as caught:
        build()
    assert caught.value.message == f"{called}: '{flag}' is a bool, not 'x'"
    assert caught.value.hint == "a name is given by name='x'"


def test_what_comes_before_a_bool_may_be_strings() -> None:
    @public
    def among(*names: str, is_sorted: bool = False) -> list[str]:
        return sorted(names) if is_sorted else list(names)

    assert among("b", "a", is_sorted=True) == ["a", "b"]
    assert among("b", "a") == ["b", "a"]
    with pytest.raises(fb.errors.InvalidTypeError, match="'is_sorted' is a bool") as caught:
        among("b", is_sorted="yes")
    assert "a name is given" not in str(caught.value)


def test_attributes_may_stand_behind_the_name() -> None:
    scaled = fb.OpDef(
        "Scaled",
        "x: float32 -> y: float32",
        attributes={"factor": 2.0, "offset": 0.0},
        after_name=("offset",),
        infer=lambda x, factor, offset: x.shape,
        kernel=lambda xp, x, factor, offset: x * factor + offset,
    )
    assert list(inspect.signature(scaled).parameters) == ["x", "factor", "name", "offset"]
    y = scaled(1.0, 3.0, "y", 0.5)
    assert (y.op.name, fb.Session().run(y)) == ("y", 3.5)
    with pytest.raises(fb.errors.InvalidArgumentError, match="'offsets'"):
        fb.OpDef("Wrong", "x: float32 -> y: float32", after_name=("offsets",))


MISFITS = [
    (
        "lu_solve: it needs 'rhs'",
        "write lu_solve(lower_upper, perm, rhs)",
        lambda: fb.lu_solve(1, 2),
    ),
    ("add: it needs 'y'", "write add(x, y)", lambda: fb.add(1)),
    ("rot90: it needs 'image'", "", lambda: fb.image.rot90()),
    ("add: it takes x, y, name; 4 given", "", lambda: fb.add(1, 2, 3, 4)),
    ("add: it takes x, y, name; a name is a string, not 3", "", lambda: fb.add(1, 2, 3)),
    ("no_op: it takes name; a name is a string, not 3", "", lambda: fb.no_op(3)),
    ("add: it is given 'name' twice", "", lambda: fb.add(1, 2, "a", name="b")),
    (
        "fft: it takes input, name, norm; 'ortho' stands in the place of the name",
        "write norm='ortho', or name='ortho'",
        lambda: fb.fft([1j], "ortho"),
    ),
    (
        "length: it takes input, name, unit; 'UTF8_CHAR' stands in the place of the name",
        "write unit='UTF8_CHAR', or name='UTF8_CHAR'",
        lambda: fb.strings.length("text", "UTF8_CHAR"),
    ),
    ("fft: it is given 'norm' twice", "", lambda: fb.fft([1j], "a", "ortho", norm="ortho")),
    ("rfft: it takes input_tensor, fft_length, name; 4 given", "", lambda: fb.rfft(1, 2, "a", 4)),
    ("add: it is given 'x' twice", "", lambda: fb.add(1, x=2)),
    ("reshape: it is given 'tensor' twice", "", lambda: fb.reshape(1, [1], tensor=1)),
    ("reduce_sum: there is no argument 'x'", "", lambda: fb.reduce_sum(x=1)),
    ("Variable: it needs 'initial_value'", "", lambda: fb.Variable()),
    ("Session.run: it needs 'fetches'", "write Session.run(fetches)", lambda: fb.Session().run()),
    (
        "Session.run: it takes timeout by name",
        "write for example Session.run(..., timeout=value)",
        lambda: fb.Session().run([], None, 1),
    ),
    (
        "Session.run: there is no argument 'feed_dict'; it takes fetches, feeds, timeout",
        "it is called feeds",
        lambda: fb.Session().run([], feed_dict={}),
    ),
    (
        "Session.guard: there is no argument 'nofinite'",
        "did you mean nonfinite?",
        lambda: fb.Session().guard(nofinite=True),
    ),
    (
        "Queue.enqueue: it needs 'vals'",
        "write Queue.enqueue(vals)",
        lambda: fb.FIFOQueue(1, [fb.int32], [[]]).enqueue(),
    ),
    (
        "Optimizer.minimize: it needs 'loss'",
        "write Optimizer.minimize(loss)",
        lambda: fb.train.AdamOptimizer(0.1).minimize(),
    ),
    ("Saver.save: it needs 'sess' and 'path'", "", lambda: fb.train.Saver().save()),
    ("Graph.load: it needs 'path'", "write Graph.load(path)", lambda: fb.Graph.load()),
    (
        "Queue.from_list: it needs 'queues'",
        "write Queue.from_list(index, queues)",
        lambda: fb.FIFOQueue.from_list(0),
    ),
]


@pytest.mark.parametrize(("message", "hint", "call"), MISFITS)
def test_arguments_that_do_not_fit_are_explained_at_their_line(
    message: str, hint: str, call: Callable[[], Any]
) -> None:
    with pytest.raises(fb.errors.InvalidTypeError) as caught:
        call()
    assert str(caught.value).startswith(message)
    # The message cites this file, and so the hint that is wanted.
    assert hint in (caught.value.hint or "")
    assert f"defined at {HERE}, line {call.__code__.co_firstlineno}:" in str(caught.value)
    assert files(caught.tb)[0] == HERE


def test_what_python_raises_within_is_a_named_error() -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match="MatrixRank: the arguments do not") as one:
        fb.matrix_rank(fb.eye(2), tol=[1.0, 2.0])  # type: ignore[arg-type]
    assert f"defined at {HERE}" in str(one.value)
    assert isinstance(one.value.__cause__, TypeError)
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"signal\.linear_to_mel"):
        fb.signal.linear_to_mel_weight_matrix(sample_rate="x")


def test_what_a_users_function_raises_stays_what_it_is() -> None:
    def wrong() -> Any:
        return {}["missing"]

    with pytest.raises(KeyError) as caught:
        fb.Variable(wrong)
    assert type(caught.value) is KeyError


def test_what_a_method_raises_with_arguments_that_fit_stays_what_it_is() -> None:
    class Stops(fb.train.Coordinator):
        def stopped(self) -> None:
            raise TypeError("a user's own")

    stops = Stops()
    stops.call_on_stop(stops.stopped)
    with pytest.raises(TypeError, match="a user's own") as caught:
        stops.request_stop()
    assert type(caught.value) is TypeError


def test_methods_are_shown_as_they_are_written() -> None:
    taken = inspect.signature(fb.Session.run).parameters
    assert list(taken) == ["self", "fetches", "feeds", "timeout"]
    assert taken["fetches"].default is inspect.Parameter.empty
    assert list(inspect.signature(fb.FIFOQueue.enqueue).parameters) == ["self", "vals", "name"]
    assert pickle.loads(pickle.dumps(fb.Graph.load)) == fb.Graph.load


@pytest.mark.parametrize("member", [fb.Session, fb.OpDef, fb.Variable])
def test_classes_are_shown_as_their_init_is_written(member: type) -> None:
    _, *taken = inspect.signature(member.__init__).parameters.values()
    assert list(inspect.signature(member).parameters.values()) == taken


def test_a_class_of_a_users_own_is_shown_as_its_init_is_written() -> None:
    class Logged(fb.Session):
        def __init__(self, log: list[str]) -> None:
            super().__init__()

    assert list(inspect.signature(Logged).parameters) == ["log"]
    # Of a definition it is what building takes.
    assert list(inspect.signature(fb.add).parameters) == ["x", "y", "name"]


def test_what_type_checkers_see_of_run_is_what_it_takes() -> None:
    for seen in typing.get_overloads(fb.Session.run):
        parameters = inspect.signature(seen).parameters
        taken = inspect.signature(fb.Session.run).parameters
        assert list(parameters) == list(taken)
        for name, parameter in parameters.items():
            assert parameter.default == taken[name].default
            assert parameter.kind == taken[name].kind
    assert len(typing.get_overloads(fb.Session.run)) == 2


def test_an_attribute_of_another_type_names_operation_and_line() -> None:
    with pytest.raises(fb.errors.InvalidTypeError) as caught:
        fb.strings.as_string([3.1], precision=2.5)
    assert "AsString: 'precision' is of type int" in str(caught.value)
    assert "test_public.py, line" in str(caught.value)
