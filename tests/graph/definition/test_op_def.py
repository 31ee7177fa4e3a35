"""Definitions: what attributes may be, and what a user's inference may give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.registry import op_named
from tests.interpreter import evaluate

HERE = "test_op_def.py"
Retag = fb.control_flow.Retag

holder = fb.OpDef(
    "TestHolder",
    "-> output: float32",
    attributes={"value": None, "sizes": [1, [2]]},
    infer=lambda value, sizes: fb.Shape([]),
    kernel=lambda xp, value: xp.float32(np.sum(value)),
)


def test_an_array_given_as_an_attribute_is_a_read_only_copy() -> None:
    array = np.array([1.0, 2.0])
    whole, row = holder(value=array), holder(value=(array[:1],))
    array[:] = 9.0
    assert [evaluate(whole), evaluate(row)] == [3.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        whole.op.attributes["value"][0] = 5.0


def test_lists_become_tuples() -> None:
    op = holder(value=[1, [2, [3]]]).op
    assert op.attributes["value"] == (1, (2, (3,)))
    assert op.attributes["sizes"] == (1, (2,))
    assert holder().op.attributes["sizes"] == (1, (2,))


def test_attributes_do_not_change() -> None:
    for op in (holder().op, holder(value=3).op, fb.constant(1.0).op, fb.negative(1.0).op):
        with pytest.raises(TypeError):
            op.attributes["value"] = 7
    assert holder().op.attributes["value"] is None


@pytest.mark.parametrize(
    "value", [{1}, {"a": 1}, (1, [object()]), np.array([1, None]), lambda: fb.constant(1.0)]
)
def test_what_is_not_plain_data_is_refused(value: Any) -> None:
    value = value() if callable(value) else value
    with pytest.raises(fb.errors.InvalidTypeError, match="TestHolder: 'value': ") as caught:
        holder(value=value)
    assert f"defined at {HERE}, line " in str(caught.value)


def test_functions_are_attributes() -> None:
    assert holder(value=np.add).op.attributes["value"] is np.add


def with_inference(infer: Any, outputs: str = "y: T") -> fb.OpDef:
    return fb.OpDef("TestInferred", f"x: T -> {outputs}", T=fb.FLOATS, infer=infer)


@pytest.mark.parametrize(
    ("infer", "outputs", "message"),
    [
        (lambda x: None, "y: T", "gave None, which is no Shape"),
        (lambda x: [2, 3], "y: T", "gave .2, 3., which is no Shape"),
        (lambda x: x.shape, "y: T, z: T", "gave 1 shape for 2 outputs"),
        (lambda x: [x.shape, x.shape], "y: T", "gave 2 shapes for 1 output"),
        (lambda x: x.size, "y: T", "its infer raised AttributeError"),
        (lambda x: 1 / 0, "y: T", "its infer raised ZeroDivisionError: division by zero"),
    ],
)
def test_a_users_inference_is_checked(infer: Any, outputs: str, message: str) -> None:
    define = with_inference(infer, outputs)
    with pytest.raises(fb.errors.InvalidArgumentError, match=message) as caught:
        define(fb.zeros([2]), name="mine")
    assert str(caught.value).startswith("TestInferred 'mine': ")
    assert f"defined at {HERE}, line " in str(caught.value)
    assert not fb.get_default_graph().has_operation("mine")


def test_a_users_inference_may_give_lists_of_dimensions() -> None:
    one, two = with_inference(lambda x: [[2, None], x.shape], "y: T, z: T")(fb.zeros([3]))
    assert (one.shape, two.shape) == ([2, None], [3])


@pytest.mark.parametrize(
    ("signature", "given", "message"),
    [
        ("x: T", {}, "has no '->'"),
        ("x -> y: T", {}, "is not 'name: dtype'"),
        ("x: T -> y: S", {}, "'S' in its signature is neither"),
        ("x: T, x: T -> y: T", {}, "a name is twice"),
        ("x: float32 -> y: T", {}, "no input says which dtype 'T' is"),
        ("x: float32 -> y: float32", {}, "has no type variable 'T'"),
        ("x: T -> y: T", {"T": fb.float32}, "'T' is a tuple of dtypes, not"),
        ("x: T -> y: T", {"T": ("float32",)}, "'T' is a tuple of dtypes, not"),
        ("x: T -> y: T", {"gradient": lambda op, dy: dy}, "OpDef has no argument 'gradient'"),
        ("x: T -> y: T", {"host_args": ("z",)}, "'z' in host_args is no input of"),
        ("x: T -> y: T", {"is_constant": True}, "a constant has the attribute 'value'"),
        ("x: T -> y: T", {"retag": Retag.PUSH}, "enters a frame has the attribute 'frame_name'"),
        (
            "x: T -> y: T",
            {"retag": Retag.PUSH, "attributes": {"frame_name": ""}},
            "enters a frame has the attribute 'is_constant'",
        ),
        ("x: T, yes: bool -> y: T", {"gives_dead": True}, "two outputs, and a bool as its last"),
        ("yes: bool, x: T -> y: T, z: T", {"gives_dead": True}, "two outputs, and a bool as its"),
        (
            "x: T -> y: T",
            {"owns": "variable"},
            "owns a resource of kind 'variable' has the attribute 'dtype'",
        ),
        (
            "x: T -> y: T",
            {"owns": "random_state", "attributes": {"graph_seed": None}},
            "owns a resource of kind 'random_state' has the attribute 'seed'",
        ),
        ("x: T -> y: T", {"must_be_fed": True}, "must be fed has one output and no input"),
        ("x: T -> y: T", {"summary": "curve"}, "a summary is one of 'scalar', .*, not 'curve'"),
        ("x: T -> y: T", {"summary": "scalar"}, "a summary has the attribute 'tag'"),
        (
            "x: T -> y: T",
            {"summary": "image", "attributes": {"tag": ""}},
            "a summary of images has the attribute 'max_outputs'",
        ),
        ("x: T -> y: T, z: T", {"computes_shapes": True}, "what is known of shapes is one output"),
        ("x: N*T -> y: T", {"is_identity": True}, "an identity has one input and one output"),
        ("x: T -> y: T", {"spreads_nonfinite": ("z",)}, "'z' in spreads_nonfinite is no input of"),
        ("x: T -> y: T, z: T", {"spreads_nonfinite": ("x",)}, "with spreads_nonfinite it has one"),
        ("x: T -> y: T", {"spreads_nonfinite": ("x",), "keeps_finite": True}, "has both"),
        ("x: T -> y: T", {"attributes": {"with space": 1}}, "'with space' is no name for an input"),
        ("x: T -> y: T", {"attributes": {"": 1}}, "'' is no name for an input or an attribute"),
        ("x: T -> y: T", {"attributes": {"lambda": 1}}, "'lambda' is no name for an input or"),
        ("lambda: T -> y: T", {}, "'lambda' is no name for an input or an attribute"),
        ("x: T -> y: T", {"attributes": {"name": 1}}, "no attribute is called 'name'"),
        ("x: T -> y: T", {"attributes": {"self": 1}}, "no attribute is called 'self'"),
        ("name: T -> y: T", {}, "no input and no attribute is called 'name'"),
        ("x: T -> y: T", {"attributes": {"x": 1}}, "'x' is both an input and an attribute"),
        (
            "x: T -> y: T",
            {"attributes": {"a": 1, "b": 2}, "after_name": ("a", "a")},
            "a name is twice in after_name",
        ),
        (
            "x: T -> y: T",
            {"choices": {"mode": ("fast", "exact")}},
            "what says its choices has the attribute 'mode'",
        ),
        (
            "x: T -> y: T",
            {"attributes": {"mode": "slow"}, "choices": {"mode": ("fast", "exact")}},
            "'mode' is one of 'fast', 'exact', not 'slow'",
        ),
        (
            "x: T -> y: T",
            {"attributes": {"mode": "f"}, "choices": {"mode": "fast"}},
            "the choices of 'mode' are a tuple of strings, not 'fast'",
        ),
        (
            "x: T -> y: T",
            {"attributes": {"mode": "fast"}, "choices": {"mode": ("fast", 1)}},
            "the choices of 'mode' are a tuple of strings, not \\('fast', 1\\)",
        ),
        (
            "x: T -> y: T",
            {"attributes": {"mode": fb.REQUIRED}, "choices": {"mode": ()}},
            "there are no choices for 'mode', so that nothing could be given",
        ),
        ("x: T -> y: T", {"expression": "exp(x"}, "is not Python's: '\\(' was never closed"),
        ("x: T -> y: T", {"expression": "xp.exp(x)"}, "'xp' in the expression .* is neither"),
    ],
)
def test_a_definition_is_checked(signature: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=message):
        fb.OpDef("TestDefinition", signature, **{"T": fb.FLOATS, **given})


def test_what_is_none_of_the_choices_of_an_attribute_is_refused() -> None:
    rounded = fb.OpDef(
        "RoundedBy",
        "x: float32 -> y: float32",
        attributes={"mode": fb.REQUIRED},
        choices={"mode": ("floor", "ceil")},
        infer=lambda x, mode: x.shape,
        kernel=lambda xp, x, mode: getattr(xp, mode)(x),
    )
    with fb.Session() as sess:
        assert sess.run([rounded(1.5, "floor"), rounded(1.5, mode="ceil")]) == [1.0, 2.0]
    for wrong in ("round", 1, ["floor"]):
        with pytest.raises(fb.errors.InvalidArgumentError, match="'mode' is one of 'floor'"):
            rounded(1.5, wrong)
    with pytest.raises(fb.errors.InvalidTypeError, match="write mode='ceil'"):
        fb.OpDef(
            "RoundedLater",
            "x: float32 -> y: float32",
            attributes={"mode": "floor"},
            choices={"mode": ("floor", "ceil")},
            after_name=("mode",),
        )(1.5, "ceil")


def test_what_a_definition_was_given_may_change_later() -> None:
    attributes, choices = {"mode": "floor"}, {"mode": ("floor", "ceil")}
    rounded = fb.OpDef(
        "RoundedAlways",
        "x: float32 -> y: float32",
        attributes=attributes,
        choices=choices,
        infer=lambda x, mode: x.shape,
        kernel=lambda xp, x, mode: getattr(xp, mode)(x),
    )
    attributes["mode"], choices["mode"] = "trunc", ("trunc",)
    with fb.Session() as sess:
        assert sess.run([rounded(1.5), rounded(1.5, mode="ceil")]) == [1.0, 2.0]
    with pytest.raises(fb.errors.InvalidArgumentError, match="'mode' is one of 'floor', 'ceil'"):
        rounded(1.5, mode="trunc")
    for fixed in (rounded.attributes, rounded.choices):
        with pytest.raises(TypeError, match="does not support item assignment"):
            fixed["mode"] = ()


def test_users_define_what_is_fed_and_what_is_shown() -> None:
    given = fb.OpDef("Given", "-> y: float32", infer=lambda: fb.Shape([2]), must_be_fed=True)
    shown = fb.OpDef(
        "LargestSummary",
        "x: float32 -> y: float32",
        attributes={"tag": ""},
        infer=lambda x, tag: fb.Shape([]),
        kernel=lambda xp, x: xp.max(x),
        summary="scalar",
    )
    x = given(name="x")
    total = fb.reduce_sum(x)
    shown(x, tag="largest")
    with fb.Session() as sess:
        kept = sess.summarize(fetches=total, series="own")
        assert sess.run(total, {x: [1.0, 4.0]}) == 5.0
        assert [p.value for p in kept.history.points("own/largest")] == [4.0]
        with pytest.raises(fb.errors.InvalidArgumentError, match="must be fed with"):
            sess.run(total)
        with pytest.raises(fb.errors.InvalidArgumentError, match="has no value here"):
            sess.peek(total)


def test_a_hint_of_the_definition_for_who_gives_strings() -> None:
    own = fb.OpDef("Own", "x: T -> y: T", T=fb.FLOATS, for_strings="fb.strings.length(x) counts")
    with pytest.raises(fb.errors.InvalidTypeError, match="length"):
        own(fb.constant("a"))
    with pytest.raises(fb.errors.InvalidTypeError, match="puts strings together"):
        fb.add(fb.constant("a"), fb.constant("b"))


def test_a_type_has_a_name() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="'My op' is no name"):
        fb.OpDef("My op", "x: T -> y: T", T=fb.FLOATS)


def test_nobody_can_tell_how_often_something_ran_that_is_repeatable() -> None:
    named = ("Exp", "Switch", "PyFunc", "PyFuncStateless", "ReadVariable", "RandomUniform")
    assert [n for n in named if op_named(n).is_repeatable] == ["Exp", "Switch"]
    assert not holder.is_repeatable


def test_flowbooks_own_types_are_those_defined_by_its_import() -> None:
    assert op_named("Add").is_builtin
    source = "mine = fb.OpDef('Mine', 'x: T -> y: T', T=fb.FLOATS, kernel=lambda xp, x: x)"
    for name in ("flowbook_of_a_user", "flowbook.graph.ops.mine"):
        exec(source, {"__name__": name, "fb": fb})
        assert not op_named("Mine").is_builtin


def test_a_failing_gradient_names_its_operation() -> None:
    x = fb.constant([1.0, 2.0])
    same = {"infer": lambda x: x.shape, "kernel": lambda xp, x: x, "T": fb.FLOATS}
    raises = fb.OpDef("TestRaises", "x: T -> y: T", grad=lambda op, dy: {}["dx"], **same)
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"TestRaises.*raised KeyError: 'dx'"):
        fb.gradients(raises(x), [x])
    inner = fb.OpDef("TestInner", "x: T -> y: T", grad=lambda op, dy: dy @ [[1.0]], **same)
    with pytest.raises(fb.errors.InvalidArgumentError, match="in the gradient of TestInner"):
        fb.gradients(inner(x), [x])


def test_a_failing_cost_names_its_operation() -> None:
    costly = fb.OpDef(
        "TestCostly",
        "x: T -> y: T",
        T=fb.FLOATS,
        infer=lambda x: x.shape,
        kernel=lambda xp, x: x,
        cost=lambda op: op.outputs[0].shape[0] * 2,
    )
    x = fb.placeholder(fb.float32, name="x")
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"TestCostly.*its cost raised"):
        fb.forecast(costly(x), {x: (None,)})


def test_a_type_defined_again_starts_with_its_own_kernel() -> None:
    def define(factor: float) -> Any:
        return fb.OpDef(
            "TestAgain",
            "x: float32 -> y: float32",
            infer=lambda x: x.shape,
            kernel=lambda xp, x: x * xp.float32(factor),
        )

    x = fb.placeholder(fb.float32, [])
    first = define(2.0)(x)
    fb.register_kernel("TestAgain", "cpu")(lambda xp, x: x - xp.float32(1.0))
    second = define(4.0)(x)
    with fb.Session() as sess:
        assert sess.run([first, second], {x: 3.0}) == [2.0, 12.0]


def test_what_is_folded_takes_the_registered_kernel_too() -> None:
    op_def = fb.OpDef(
        "TestFolded",
        "x: float32 -> y: float32",
        infer=lambda x: x.shape,
        kernel=lambda xp, x: x * xp.float32(2.0),
    )
    fb.register_kernel("TestFolded", "cpu")(lambda xp, x: x - xp.float32(1.0))
    folded, y = op_def(fb.constant(3.0)), fb.placeholder(fb.float32, [])
    with fb.Session() as sess:
        assert sess.run([folded, op_def(y)], {y: 3.0}) == [2.0, 2.0]


def test_a_kernel_is_for_a_kind_of_device_that_there_is() -> None:
    with pytest.raises(fb.errors.NotFoundError, match="no devices of kind 'cpuu'") as caught:
        fb.register_kernel("MatMul", "cpuu")
    assert "known kinds are cpu" in str(caught.value)


@pytest.mark.parametrize(("old", "new"), [("effects", "touches="), ("resource", "owns=")])
def test_arguments_of_earlier_definitions_name_todays(old, new):
    with pytest.raises(fb.errors.InvalidTypeError, match=f"no argument '{old}'") as caught:
        fb.OpDef("Earlier", "x: float32 -> y: float32", **{old: "anything"})
    assert new in caught.value.hint
    with pytest.raises(AttributeError, match="touches="):
        fb.Effects  # noqa: B018


@pytest.mark.parametrize(
    ("outputs", "goes_without_saying"),
    [
        ("n: int32, found: bool, text: string", True),
        ("", True),
        ("n: int32, x: float32", False),
        ("n: I", True),
        ("n: T", False),
        ("y: dtype", False),
        ("handle: variant", False),
    ],
)
def test_no_gradient_flows_through_what_is_not_differentiable(
    outputs: str, goes_without_saying: bool
) -> None:
    variables = {"I": (fb.int32, fb.int64), "T": (fb.int32, fb.float32)}
    made = fb.OpDef(
        "TestOutputs", f"x: T, k: I -> {outputs}", attributes={"dtype": fb.float32}, **variables
    )
    assert (made.grad is not None) is goes_without_saying
    own = fb.OpDef(
        "TestOutputs",
        f"x: T, k: I -> {outputs}",
        attributes={"dtype": fb.float32},
        grad=lambda op, *dys: None,
        **variables,
    )
    assert own.grad is not None
    assert own.grad(None) is None


def test_that_nothing_is_shared_goes_without_saying_of_flowbooks_own_kernels() -> None:
    def kernel(xp: Any, x: Any) -> Any:
        return x.reshape(-1)

    assert op_named("Add").aliases == {}
    assert op_named("Reshape").aliases == {0: 0}
    assert op_named("Variable").aliases is None  # It has no kernel.
    assert op_named("QueueDequeue").aliases == {}  # It says so: it waits.
    assert fb.OpDef("TestView", "x: float32 -> y: float32", kernel=kernel).aliases is None
