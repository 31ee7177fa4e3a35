"""A definition's generic kernel is right on every kind of device that it names.

The simulated device stands for all kinds but the CPU: its arrays refuse what a GPU's refuse. Each
row of `tests/op_cases` runs there on the inputs that the CPU's kernel gets, and gives what that
gives.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.devices.cpu import Cpu
from flowbook.exec.devices.device import Device
from flowbook.exec.devices.gpu import Gpu
from flowbook.exec.devices.simulated import Simulated
from flowbook.graph.control_flow import array_ops
from flowbook.graph.definition.widened import widened
from flowbook.graph.model import dtypes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import (
    dtype_not_held,
    kernel_for,
    kinds_with_kernel,
    op_named,
    without_kernel,
)
from flowbook.graph.numerics import element_choices
from flowbook.graph.ops.reduction import scans, standardising
from tests.exec.devices.fake_cupy import FakeGpu, fake_gpu
from tests.exec.resources.test_on_devices import USES
from tests.interpreter import evaluate
from tests.op_cases import CASES, SCENARIOS, Case
from tests.op_cases.case import admitted, natural
from tests.op_checks import about, agree, built, each

__all__ = ["fake_gpu"]


def is_about_arrays(type_: str) -> bool:
    """Whether it takes or gives what no single kernel can be handed: stacks, arrays of tensors."""
    op_def = op_named(type_)
    return any(argument.token == "variant" for argument in (*op_def.inputs, *op_def.outputs))


HERE = [
    case
    for case in CASES
    if kernel_for(op_named(case.type), "simulated") is not None
    and not is_about_arrays(case.type)
    and set(admitted(case)) != {dtypes.string}  # Which stay on the host.
]
ABOUT_ARRAYS = [case for case in CASES if is_about_arrays(case.type)]

# What a row of values cannot express, and has a test below.
ROUTING = {"Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch"}
WITHOUT_ROWS = {
    *("CheckFinite", "Const", "ControlTrigger", "MarkTraining", "MarkUpdate", "NoOp"),
    *("FillTo32Bits", "OwnGradient", "TruncateTo16Bits", *ROUTING),
    # What crosses between devices: `tests/exec/engine/test_joint.py` has it do so here.
    *("Fetch", "Recv", "Send"),
}

# Types whose kernels wait for the device: values decide about a size, a way, or an error.
WAITING = {
    *("Bincount", "BooleanMask", "BooleanMaskGrad", "CTCGreedyDecoder", "CTCLoss"),
    *("CTCLossGradAlong", "CheckNumerics", "ConfusionMatrix", "DenseToSparse", "Deviation"),
    *("DynamicPartition", "DynamicStitch", "DynamicStitchGrad", "EuclideanNorm", "FloorDiv"),
    *("Gather", "GatherGrad", "GatherNd", "InvertPermutation", "ListDiff"),
    *("LogMatrixDeterminant", "MatrixDeterminant", "MatrixExponential", "MatrixPseudoInverse"),
    *("MatrixRank", "MatrixTriangularSolve", "MaxPoolGrad", "MaxPoolGradGrad"),
    *("MaxPoolWithArgmax", "Mod", "Moments", "Pow", "Repeat", "ReverseSequence", "ScatterNd"),
    *("SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentProductOfOthers"),
    *("SegmentSum", "SelfAdjointEig", "SoftmaxCrossEntropyWithLogits", "SparseConcat"),
    *("SparseDenseAdd", "SparseDenseMatMul", "SparseFillEmptyRows", "SparseKept", "SparseMask"),
    *("SparseMaxInto", "SparseOrder", "SparsePick", "SparseReshape", "SparseRowSegments"),
    *("SparseSampledMatMul", "SparseSegmentCombine", "SparseSegmentSpread", "SparseSlice"),
    *("SparseSoftmax", "SparseSoftmaxCrossEntropyWithLogits", "SparseSumInto", "SparseToDense"),
    *("SparseUnion", "Svd", "TensorScatterUpdate", "TensorScatterUpdateGrad", "TopK"),
    *("TrueIndices", "TruncateDiv", "TruncateMod", "Unique", "UnravelIndex"),
    *("UnsortedSegmentMax", "UnsortedSegmentMean", "UnsortedSegmentMeanGrad"),
    *("UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum", "UnsortedSegmentTake"),
    *("Variance", "WeightedBincount"),
}
# They do, too, where the axis is an input.
WAITING |= {d.with_axis_input.type for d in map(op_named, WAITING) if d.with_axis_input}


def run(operation: Operation, inputs: list[Any], device: Device) -> list[Any]:
    """What the kernel for a kind of device gives, with inputs where the definition wants them."""
    op_def = operation.op_def
    kernel = kernel_for(op_def, device.kind)
    assert kernel is not None
    places = op_def.grouped(range(len(inputs)), operation.attributes)
    given = list(inputs)
    for argument, found in zip(op_def.inputs, places, strict=True):
        for place in found if argument.is_list else [found]:
            if argument.name not in op_def.host_args:
                given[place] = device.own(inputs[place])
    attributes = {name: operation.attributes[name] for name in op_def.kernel_attributes(kernel)}
    with np.errstate(all="ignore"):
        taken = [tensor.dtype for tensor in operation.inputs]
        compute = widened(op_def, taken, operation.dtypes, kernel)
        found = device.run(partial(compute, device.xp, *given, **attributes))
    is_single = len(op_def.outputs) == 1 and not op_def.outputs[0].is_list
    outputs = [found] if is_single else list(found)
    assert all(device.check(output) for output in outputs)
    return [device.fetch(output) for output in outputs]


# Operations with what they are given, and what the CPU makes of that.
Examples = list[tuple[Operation, list[Any], list[Any]]]


def examples(case: Case, given: Any, dtype: DType | None) -> Examples:
    """A row's operations on the CPU, on inputs of the row's."""
    outputs, feeds = built(case, given, dtype=dtype)
    found = []
    for operation in [op for op in outputs[0].graph.operations if op.type == case.type]:
        inputs = [np.asarray(value) for value in evaluate([*operation.inputs], feeds)]
        found.append((operation, inputs, run(operation, inputs, Cpu())))
    return found


@cache
def natural_examples(case: Case) -> Examples:
    """Those of a row as it stands, for several devices."""
    return examples(case, case.inputs, natural(case))


def compare(case: Case, on_the_cpu: Examples, device: Device) -> None:
    """Hold a row's operations on a device against themselves on the CPU."""
    for operation, inputs, expected in on_the_cpu:
        if dtype_not_held(operation, device.kind) is not None:
            continue
        for found, wanted in zip(run(operation, inputs, device), expected, strict=True):
            assert found.dtype == wanted.dtype
            agree(np.asarray(found), exact(wanted), case.tolerance, inputs)


@cache
def waits(case: Case) -> int:
    """Hold a row's operations in all dtypes against the CPU's; return how often they wait."""
    device = Simulated()
    for dtype in admitted(case):
        if dtype is not dtypes.string:
            with about(dtype):
                compare(case, examples(case, case.inputs, dtype), device)
    # Something has run here.
    assert device.copied_in or device.copied_out
    return device.waits


def exact(value: Any) -> Any:
    """A value that can be compared: bfloat16 as float64."""
    return np.asarray(value).astype(np.float64) if value.dtype.kind == "V" else np.asarray(value)


@each(HERE)
def test_the_kernel_is_right_on_every_kind(case: Case) -> None:
    assert waits(case) == 0 or case.type in WAITING


@each(HERE)
def test_so_are_the_ways_that_large_arrays_take(case: Case) -> None:
    on_the_cpu = natural_examples(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(element_choices, "_LARGE", 0)
        patch.setattr(scans, "_MANY_ROWS", 1)
        patch.setattr(standardising, "_LONG", 1)
        compare(case, on_the_cpu, Simulated())


@each(c for c in HERE if c.empty is not None)
def test_so_are_arrays_of_nothing(case: Case) -> None:
    compare(case, examples(case, case.empty, natural(case)), Simulated())


@each(c for c in HERE if c.special is not None)
def test_so_are_arrays_of_nan(case: Case) -> None:
    compare(case, examples(case, case.special, natural(case)), Simulated())


@pytest.mark.usefixtures("fake_gpu")
@each(HERE)
def test_so_it_is_by_way_of_the_streams_of_a_gpu(case: Case) -> None:
    compare(case, natural_examples(case), Gpu())


# For GPUs there are kernels of their own.
ON_GPUS_ALONE = [
    case
    for case in CASES
    if kernel_for(op_named(case.type), "simulated") is None
    and kernel_for(op_named(case.type), "gpu") is not None
]


@pytest.mark.parametrize("case", ON_GPUS_ALONE, ids=lambda case: case.name)
def test_so_are_those_of_gpus_alone(case: Case, fake_gpu: FakeGpu) -> None:
    compare(case, examples(case, case.inputs, natural(case)), Gpu())
    if case.special is not None:
        compare(case, examples(case, case.special, natural(case)), Gpu())


def test_matrices_without_a_factor_or_an_inverse_are_noticed_there(fake_gpu: FakeGpu) -> None:
    assert {case.type for case in ON_GPUS_ALONE} == {"Cholesky", "MatrixInverse", "MatrixSolve"}
    singular = fb.constant(np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]]))
    with fb.device("gpu:0"):
        failing = {
            "not positive definite": fb.cholesky(singular - 1.0),
            "A matrix is singular": fb.matrix_inverse(singular),
            "matrix is singular": fb.matrix_solve(singular, fb.ones([2, 1], fb.float64)),
        }
    with fb.Session(devices=["gpu:0"]) as sess:
        for message, tensor in failing.items():
            with pytest.raises(fb.errors.InvalidArgumentError, match=message):
                sess.run(tensor)


@pytest.mark.parametrize("type_", sorted(WAITING))
def test_those_that_are_said_to_wait_do(type_: str) -> None:
    assert any(waits(case) for case in HERE if case.type == type_)


def test_every_type_is_right_here_or_says_where() -> None:
    types = {row.type for row in (*CASES, *SCENARIOS)}
    run_here = {case.type for case in (*HERE, *ABOUT_ARRAYS)} | {*USES} | {*DRAWS} | HANDLES
    run_here |= {type_ for kept in KEEPING for type_ in kept}
    assert run_here | {*without_kernel("simulated")} | WITHOUT_ROWS >= types
    assert not WITHOUT_ROWS & ({*without_kernel("simulated")} | run_here)


def test_what_touches_the_world_stays_on_the_host_and_so_does_other_state() -> None:
    for type_ in {row.type for row in (*CASES, *SCENARIOS)} - {*USES, *DRAWS, *HANDLES}:
        op_def = op_named(type_)
        if not op_def.is_pure and not op_def.is_handle:
            assert kernel_for(op_def, "simulated") is None


# What keeps values between runs where they are; `test_session_tensors.py` and
# `test_synchronisation.py` have it do so here.
HANDLES = {
    *("AccumulatorApply", "AccumulatorSetStep", "AccumulatorSize", "AccumulatorTake"),
    *("DeleteSessionTensor", "GetSessionHandle", "GetSessionTensor"),
}

# What draws, by its type: from a seed, of three numbers.
DRAWS: dict[str, Any] = {
    "RandomNormal": lambda: fb.random_normal([3], seed=1),
    "RandomUniform": lambda: fb.random_uniform([3], seed=1),
    "RandomUniformInt": lambda: fb.random_uniform([3], 0, 9, fb.int32, seed=1),
    "StatelessRandomNormal": lambda: fb.stateless_random_normal([3], [1, 2]),
    "StatelessRandomUniform": lambda: fb.stateless_random_uniform([3], [1, 2]),
    "StatelessRandomUniformInt": lambda: fb.stateless_random_uniform([3], [1, 2], 0, 9, fb.int32),
    "StatelessTruncatedNormal": lambda: fb.stateless_truncated_normal([3], [1, 2]),
    "TruncatedNormal": lambda: fb.truncated_normal([3], seed=1),
}


def test_the_same_numbers_are_drawn_everywhere() -> None:
    drawn: dict[str, fb.Tensor] = {type_: draw() for type_, draw in DRAWS.items()}
    with fb.device("simulated:0"):
        there = {type_: draw() for type_, draw in DRAWS.items()}
    with fb.Session(devices=["cpu:0", "simulated:0"]) as sess:
        for _ in range(3):
            found, wanted = sess.run([there, drawn])
            for type_, values in wanted.items():
                assert any(op.type == type_ for op in there[type_].graph.operations)
                np.testing.assert_array_equal(found[type_], values, strict=True)


@pytest.mark.parametrize("case", ABOUT_ARRAYS, ids=lambda case: case.name)
def test_arrays_of_tensors_are_right_here_too(case: Case) -> None:
    """The whole of what a row builds, one operation after the other."""
    outputs, feeds = built(case, case.inputs)
    device = Simulated()
    values = {tensor: device.own(value) for tensor, value in feeds.items()}
    for operation in outputs[0].graph.operations:
        op_def = operation.op_def
        if operation.outputs[0] in feeds:
            continue
        on_host = [argument.name in op_def.host_args for argument in op_def.inputs]
        given = [
            device.fetch(values[tensor]) if is_host else values[tensor]
            for tensor, is_host in zip(operation.inputs, on_host, strict=True)
        ]
        kernel = op_def.kernel
        assert kernel is not None
        attributes = {n: operation.attributes[n] for n in op_def.kernel_attributes(kernel)}
        found = kernel(device.xp, *given, **attributes)
        values.update(
            zip(operation.outputs, found if len(operation.outputs) > 1 else [found], strict=True)
        )
    expected = evaluate(outputs, feeds)
    for tensor, wanted in zip(outputs, expected, strict=True):
        assert device.check(values[tensor])
        np.testing.assert_array_equal(device.fetch(values[tensor]), wanted)


def gradient_of_a_loop(x: fb.Tensor, **options: Any) -> list[fb.Tensor]:
    """A loop whose iterations leave values for the one that takes the gradient."""
    _, found = fb.while_loop(
        lambda i, h: i < 3, lambda i, h: (i + 1, fb.tanh(h * x)), (0, x), **options
    )
    return [found, *fb.gradients(found, [x])]


def array_put_together(x: fb.Tensor) -> list[fb.Tensor]:
    """Elements that are written one by one, added to by their gradients, and taken apart."""
    array = fb.TensorArray(fb.float32, 4, clear_after_read=False)
    begun = array.scatter([0, 2], x[:2]).write(3, x[2]).write(1, x[3])
    pieces = fb.TensorArray(fb.float32, 2, clear_after_read=False, infer_shape=False)
    split = pieces.split(x, [1, 3])
    # The gradients of what is read twice add up.
    found = [begun.stack(), begun.read(2) * begun.gather([2, 3]), split.concat() * split.read(0)]
    return [*found, *fb.gradients(found, [x])]


def elements_replaced(x: fb.Tensor) -> list[fb.Tensor]:
    """What is written in the place of another element takes its gradient."""
    shape = fb.Shape([2])
    array = array_ops.scatter_op(array_ops.array_op(4, element_shape=shape), [0, 1, 2, 3], x)
    replaced = array_ops.replace_op(array, 1, x[3] * 2.0)
    found = array_ops.gather_op(replaced, [0, 1, 2, 3], dtype=fb.float32, element_shape=shape)
    return [found, *fb.gradients(fb.square(found), [x])]


# What keeps values on stacks and in arrays of tensors, by its types: of an x [4, 2].
KEEPING: dict[tuple[str, ...], Callable[[fb.Tensor], list[fb.Tensor]]] = {
    ("EmptyStack", "StackPush", "StackPop"): gradient_of_a_loop,
    ("StackPushToHost", "StackPopFromHost"): partial(gradient_of_a_loop, swap_memory=True),
    (
        *("TensorArray", "TensorArrayScatter", "TensorArrayWrite", "TensorArraySplit"),
        "TensorArrayAdd",
    ): array_put_together,
    ("TensorArrayReplace", "TensorArrayLeaveOut"): elements_replaced,
}


@pytest.mark.parametrize("types", KEEPING, ids="-".join)
def test_what_keeps_tensors_is_right_here_too(types: tuple[str, ...]) -> None:
    x = fb.placeholder(fb.float32, [4, 2])
    expected = KEEPING[types](x)
    with fb.device("simulated:0"):
        found = KEEPING[types](x)
    feeds = {x: np.linspace(-1, 2, 8, dtype=np.float32).reshape(4, 2)}
    with fb.Session(devices=["cpu:0", "simulated:0"]) as sess:
        plan = sess.explain(found, feeds)
        here = {op.type for op, at in plan.operations.items() if "simulated" in at.device}
        assert here.issuperset(types)
        for one, other in zip(*sess.run([found, expected], feeds), strict=True):
            np.testing.assert_array_equal(one, other)


def test_operations_without_rows_are_right_here_too() -> None:
    device = Simulated()
    with fb.Graph().as_default():
        constant = fb.constant([1.0, 2.0])
        nothing = fb.no_op()
    np.testing.assert_array_equal(run(constant.op, [], device)[0], [1.0, 2.0])
    assert run(nothing, [], device) == []
    check = op_named("CheckFinite").kernel
    assert check is not None
    assert check(device.xp, device.own(np.ones(3)), checked=1) == ()
    with pytest.raises(fb.errors.InvalidArgumentError, match="NaN or infinite"):
        check(device.xp, device.own(np.array([1.0, np.nan])), checked=1)
    for type_ in ("MarkTraining", "MarkUpdate"):
        kernel = op_named(type_).kernel
        assert kernel is not None
        assert kernel(device.xp) == ()


@pytest.mark.parametrize(
    ("type_", "inputs", "message"),
    [
        (
            "GatherNd",
            [np.ones((2, 3)), np.array([[1, 2], [0, 3]])],
            r"indices \[0, 3\] lie outside the shape \[2, 3\] \(element \[1\]\)",
        ),
        ("InvertPermutation", [np.array([0, 3, 1])], "3 is out of range: there are 3"),
        ("FloorDiv", [np.array([4, 5]), np.array([2, 0])], "zero"),
        ("SegmentSum", [np.ones(3), np.array([0, 2, 1])], r"not sorted: 1 \(element \[2\]\)"),
        ("WeightedBincount", [np.array([1, -4]), np.ones(2)], "a negative number, -4, is counted"),
        (
            "SparseToDense",
            [np.array([[0, 1], [1, 2]]), np.array([2, 2]), np.ones(2), np.array(0.0)],
            r"indices\[1\] is \[1, 2\], which lies outside the dense shape \[2, 2\]",
        ),
        (
            "SparseToDense",
            [np.array([[1, 1], [0, 1]]), np.array([2, 2]), np.ones(2), np.array(0.0)],
            r"indices\[1\] is \[0, 1\], which comes after \[1, 1\]",
        ),
    ],
)
def test_mistakes_are_named_as_on_the_cpu(type_: str, inputs: list[Any], message: str) -> None:
    with fb.Graph().as_default():
        placeholders = [fb.placeholder(fb.as_dtype(value.dtype)) for value in inputs]
        operation = op_named(type_)(*placeholders).op
    for device in (Cpu(), Simulated()):
        with pytest.raises((ValueError, IndexError), match=message):
            run(operation, inputs, device)


# What users say


def test_a_users_kernel_serves_every_kind_unless_it_says_otherwise() -> None:
    def define(**options: Any) -> fb.OpDef:
        return fb.OpDef("OnKinds", "x: float32 -> y: float32", infer=lambda x: x.shape, **options)

    def kernel(xp: Any, x: Any) -> Any:
        return np.exp(x)

    assert kinds_with_kernel(define(kernel=lambda xp, x: xp.exp(x))) == ["cpu", "gpu", "simulated"]
    assert kinds_with_kernel(define(kernel=kernel, kinds=("cpu",))) == ["cpu"]
    assert kinds_with_kernel(define()) == []
    op_def = define(kernel=kernel, kinds=("cpu",))
    fb.register_kernel("OnKinds", "simulated")(lambda xp, x: xp.exp(x))
    assert kinds_with_kernel(op_def) == ["cpu", "simulated"]
    # One that is wrong is an error where it runs, never a wrong value.
    device = Simulated()
    with pytest.raises(TypeError):
        kernel(device.xp, device.own(np.ones(3, np.float32)))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"kinds": "cpu"}, "kinds is a tuple of names, not 'cpu'"),
        ({"host_args": "x"}, "host_args is a tuple of names, not 'x'"),
        ({"host_args": ("y",)}, "'y' in host_args is no input of"),
    ],
)
def test_definitions_that_say_it_wrongly(options: Any, why: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=why):
        fb.OpDef("OnKinds", "x: float32 -> y: float32", **options)


@pytest.mark.parametrize("type_", sorted(ROUTING))
def test_what_routes_values_hands_them_on(type_: str) -> None:
    device = Simulated()
    op_def = op_named(type_)
    is_condition = op_def.inputs[0].name in op_def.host_args
    value = np.bool_(True) if is_condition else device.own(np.arange(3.0))
    given: list[Any] = [value] * len(op_def.inputs)
    if op_def.gives_dead:
        given[-1] = np.bool_(True)
    assert op_def.kernel is not None
    found = op_def.kernel(device.xp, *given)
    assert any(each is value for each in (found if isinstance(found, tuple) else (found,)))
    assert not device.copied_out


def test_a_gradient_of_ones_own_hands_results_on() -> None:
    device = Simulated()
    value = device.own(np.arange(3.0))
    kernel = op_named("OwnGradient").kernel
    assert kernel is not None
    assert kernel(device.xp, value, value, Tout=(fb.float64,))[0] is value
