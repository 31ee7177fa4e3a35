"""Every check of every row in `tests/op_cases/`, and that every operation type has one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.building.graph import Graph
from flowbook.graph.definition.inference import broadcast_inputs, same_as_input
from flowbook.graph.gradients.backward import gradients
from flowbook.graph.model import dtypes
from flowbook.graph.model.registry import op_definitions, op_named
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.arrays.indexed_slices import IndexedSlices
from flowbook.graph.ops.basis.broadcasting import reduce_sum
from tests.differences import numeric_gradient
from tests.interpreter import evaluate
from tests.op_cases import CASES, SCENARIOS, Case
from tests.op_cases.case import admitted, converted, natural
from tests.op_checks import about, as_list, built, compared, each, equal, specimen

EACH = each(CASES)
DIFFERENTIABLE = [c for c in CASES if c.differentiable]
STEP = 1e-5


def test_every_type_has_a_row() -> None:
    rows = {case.type for case in CASES} | {scenario.type for scenario in SCENARIOS}
    builtin = {d.type for d in op_definitions().values() if d.is_builtin}
    assert builtin - rows == set(), "operation types without a row in tests/op_cases/"
    assert rows - builtin == set(), "rows of types that do not exist"


def test_no_two_rows_have_one_name() -> None:
    names = [case.name for case in CASES]
    assert sorted(set(names)) == sorted(names)


def test_a_row_is_about_its_type() -> None:
    for case in CASES:
        with about(case.name):
            outputs, _, _ = specimen(case)
            assert case.type in {t.op.type for t in outputs}


@EACH
def test_values(case: Case) -> None:
    """In every dtype that a row is tried in."""
    for dtype in admitted(case):
        with about(dtype):
            compared(case, case.inputs, dtype)


@each(c for c in CASES if c.empty is not None)
def test_without_elements(case: Case) -> None:
    assert case.empty is not None
    outputs, feeds = built(case, case.empty)
    results = evaluate(outputs, feeds)
    for output, result in zip(outputs, results, strict=True):
        assert result.dtype == output.dtype.numpy
        if case.by_value:
            assert output.shape.is_compatible_with(result.shape)
        else:
            assert output.shape == result.shape
    if not any(v.size == 0 and v.ndim == 0 for v in map(np.asarray, case.empty)):
        with np.errstate(all="ignore"):
            try:
                expected = case.reference(*map(np.asarray, case.empty))
            except (ValueError, IndexError):
                return
        expected = expected if isinstance(expected, tuple) else (expected,)
        for result, wanted in zip(results, expected, strict=True):
            equal(result, wanted)


@each(c for c in CASES if c.special is not None)
def test_nan_and_infinity(case: Case) -> None:
    floats = [d for d in (dtypes.float64, dtypes.float32) if d in admitted(case)]
    for dtype in floats:
        compared(case, case.special, dtype)


def test_nan_rows_are_where_floats_are() -> None:
    rows = [c for c in CASES if c.special is not None]
    assert all({dtypes.float64, dtypes.float32} & set(admitted(c)) for c in rows)


@EACH
def test_the_order_of_memory_does_not_matter(case: Case) -> None:
    outputs, feeds, expected = specimen(case)
    turned = {t: np.repeat(v[::-1], 2, 0)[::-2] if v.ndim else v for t, v in feeds.items()}
    fortran = {t: np.array(v, order="F") for t, v in feeds.items()}
    for order in (turned, fortran):
        for value, wanted in zip(evaluate(outputs, order), expected, strict=True):
            equal(value, wanted)


# Inference


@EACH
def test_known_shapes_are_inferred(case: Case) -> None:
    outputs, feeds, results = specimen(case)
    for output, result in zip(outputs, results, strict=True):
        if case.type not in ("PyFuncStateless",):
            assert output.shape.is_compatible_with(result.shape)
            if (
                all(t.shape.is_fully_defined for t in feeds)
                and len(case.fixed) + len(feeds) == len(case.inputs)
                and not case.by_value
            ):
                assert output.shape == result.shape


# So many at most are tried of an input. It is a prime number.
SHAPES = 5


def partially_known(value: np.ndarray) -> list[Any]:
    """Shapes that a value has and that say less than all, or nothing."""
    known = itertools.product([True, False], repeat=value.ndim)
    shapes = [[d if k else None for d, k in zip(value.shape, ks, strict=True)] for ks in known]
    return [*shapes, None][-SHAPES:]


def meeting(choices: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """One of each, until any two, fewer than five places apart, have met in all pairs."""
    pairs = itertools.product(range(SHAPES), repeat=2)
    places = [[(a + k * b) % SHAPES for k in range(len(choices))] for a, b in pairs]
    seen = {tuple(p % len(c) for p, c in zip(ps, choices, strict=True)) for ps in places}
    for chosen in sorted(seen):
        yield tuple(c[p] for p, c in zip(chosen, choices, strict=True))


@EACH
def test_partial_shapes_are_compatible(case: Case) -> None:
    meets_partial_shapes(case, fix=True)
    if case.fixed:
        with about("fed arguments"):
            meets_partial_shapes(case, fix=False)


def meets_partial_shapes(case: Case, fix: bool) -> None:
    _, _, expected = specimen(case)
    fed = [v for k, v in enumerate(case.inputs) if not (fix and k in case.fixed)]
    for shapes in meeting([partially_known(np.asarray(v)) for v in fed]):
        pending = iter(shapes)
        outputs, feeds = built(case, case.inputs, lambda _, p=pending: next(p), fix=fix)
        for output, result, wanted in zip(outputs, evaluate(outputs, feeds), expected, strict=True):
            assert output.shape.is_compatible_with(result.shape)
            equal(result, wanted)


# Storing


def by_name(graph: Graph, tensor: Tensor) -> Tensor:
    return graph.get_tensor_by_name(tensor.name)


@EACH
def test_a_stored_graph_means_the_same(case: Case) -> None:
    outputs, feeds, results = specimen(case)
    graph = outputs[0].graph
    if case.type == "PyFuncStateless":
        with pytest.raises(fb.errors.UnimplementedError, match="func"):
            graph.to_bytes()
        return
    loaded = Graph.from_bytes(graph.to_bytes())
    assert loaded.to_bytes() == graph.to_bytes()
    copies = [by_name(loaded, t) for t in outputs]
    for output, copy in zip(outputs, copies, strict=True):
        assert (copy.dtype, copy.shape) == (output.dtype, output.shape)
        assert copy.op.attributes.keys() == output.op.attributes.keys()
    values = evaluate(copies, {by_name(loaded, t): v for t, v in feeds.items()})
    for value, expected in zip(values, results, strict=True):
        equal(value, expected)


@each(DIFFERENTIABLE)
def test_a_stored_graph_differentiates_the_same(case: Case) -> None:
    outputs, xs, feeds = prepared(case)
    loaded = Graph.from_bytes(outputs[0].graph.to_bytes())
    found = []
    for graph, get in ((outputs[0].graph, lambda t: t), (loaded, lambda t: by_name(loaded, t))):
        with graph.as_default():
            ys = [get(o) for o in outputs if o.dtype.is_floating]
            grads = [dense(g) for g in gradients(ys, [get(x) for x in xs])]
        found.append(evaluate(grads, {get(t): v for t, v in feeds.items()}))
    for value, expected in zip(found[1], found[0], strict=True):
        equal(value, expected)


# Gradients


def weights(values: Iterable[Any], seed: int) -> list[np.ndarray]:
    """For each of some values one of its shape, of whose elements no two are alike."""
    random = np.random.default_rng(seed)
    return [random.uniform(0.5, 1.5, value.shape) for value in values]


def weighted_sum(outputs: list[Tensor], seed: int, values: list[Any]) -> Tensor:
    """A scalar whose gradient exercises every output element differently.

    Args:
        values: those of the outputs, which have their shapes.
    """
    terms = [
        reduce_sum(output * weight)
        for output, weight in zip(outputs, weights(values, seed), strict=True)
        if output.dtype.is_floating
    ]
    return sum(terms[1:], terms[0])


def dense(gradient: Any) -> Tensor:
    assert gradient is not None
    result = gradient.as_tensor() if isinstance(gradient, IndexedSlices) else gradient
    assert isinstance(result, Tensor)
    return result


KNOWN = {
    "shape": np.shape,
    "rank": lambda value: [None] * np.ndim(value),
    "nothing": lambda _: None,
}


def prepared(
    case: Case, known: str = "shape"
) -> tuple[list[Tensor], list[Tensor], dict[Tensor, Any]]:
    """Outputs with their shapes known for the check, the inputs to differentiate by, and feeds."""
    outputs, feeds = built(case, case.inputs, KNOWN[known])
    xs = [t for t in feeds if int(t.op.name.removeprefix("input")) in case.differentiable]
    return outputs, xs, feeds


@each(DIFFERENTIABLE)
def test_gradient(case: Case) -> None:
    outputs, xs, feeds = prepared(case)
    values = evaluate(outputs, feeds)
    with outputs[0].graph.as_default():
        loss = weighted_sum(outputs, 1, values)
    numeric = [numeric_gradient(loss, x, feeds, STEP) for x in xs]
    for known in KNOWN:
        with about(f"shapes of which the graph knows: {known}"):
            outputs, xs, feeds = prepared(case, known)
            with outputs[0].graph.as_default():
                grads = [dense(g) for g in gradients(weighted_sum(outputs, 1, values), xs)]
            found = evaluate([*outputs, *grads], feeds)
            # What is differentiated is the same function, whatever is known of the shapes.
            for value, wanted in zip(found[: len(outputs)], values, strict=True):
                equal(value, wanted)
            for g, value, wanted in zip(grads, found[len(outputs) :], numeric, strict=True):
                assert value.dtype == np.float64
                assert g.shape.is_compatible_with(value.shape)
                np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-7)


@each(c for c in DIFFERENTIABLE if c.twice)
def test_second_gradient(case: Case) -> None:
    """Held against what the first gradient changes by along the weights of its sum.

    That is the sum's derivative by all inputs, since second derivatives are symmetric; and two
    values of the first gradient tell it.
    """
    outputs, xs, feeds = prepared(case)
    with outputs[0].graph.as_default():
        # The square makes the first gradient depend on every input, linear operations' too.
        squares = [o * o for o in outputs if o.dtype.is_floating]
        loss = weighted_sum(squares, 2, evaluate(squares, feeds))
        first = [dense(g) for g in gradients(loss, xs)]
        slopes = evaluate(first, feeds)
        second = [dense(g) for g in gradients(weighted_sum(first, 3, slopes), xs)]
    along = list(zip(xs, weights(slopes, 3), strict=True))
    behind, ahead = (
        evaluate(first, {**feeds, **{x: feeds[x] + sign * STEP * w for x, w in along}})
        for sign in (-1, 1)
    )
    for value, a, b in zip(evaluate(second, feeds), behind, ahead, strict=True):
        np.testing.assert_allclose(value, (b - a) / (2 * STEP), rtol=2e-4, atol=1e-6)


# Where functions end, are steep, or overflow.
EDGES = np.array([0.0, 1.0, -1.0, 2.5, -0.5, 1e-310, 800.0, -800.0, 1e300, -1e300])


def is_elementwise(case: Case) -> bool:
    """Whether a row is one operation whose gradient is elementwise too."""
    outputs, feeds = built(case, case.inputs)
    is_wide = case.type in ("LinearRecurrence", "ProductOfOthers", "NormalizeGrad")
    infer = op_named(case.type).infer
    return (
        infer in (same_as_input, broadcast_inputs)
        and not is_wide
        and [*outputs[0].op.inputs] == [*feeds]
        and len(case.differentiable) == len(feeds)
    )


def ignored_gradients(case: Case, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """A row's gradients where nothing depends on its outputs."""
    outputs, feeds = built(case, inputs)
    xs = [t for t in feeds if int(t.op.name.removeprefix("input")) in case.differentiable]
    with outputs[0].graph.as_default():
        found = gradients(outputs, xs, [fb.zeros_like(o) for o in outputs])
        values: list[np.ndarray] = evaluate([dense(g) for g in found], feeds)
    return values


@each(c for c in DIFFERENTIABLE if is_elementwise(c))
def test_nothing_comes_of_a_gradient_of_zero(case: Case) -> None:
    """However large the derivative is: no zero meets an infinity."""
    count = len(case.inputs)
    grid = [EDGES.reshape(-1, *[1] * (count - 1 - k)) for k in range(count)]
    for value in ignored_gradients(case, grid):
        equal(value, 0)


@each(c for c in DIFFERENTIABLE if c.type in ("Prod", "SegmentProd", "UnsortedSegmentProd"))
def test_nothing_comes_of_a_product_that_does_not_count(case: Case) -> None:
    for turn in range(len(EDGES)):
        first = np.resize(np.roll(EDGES, turn), np.shape(case.inputs[0]))
        for value in ignored_gradients(case, [first, *case.inputs[1:]]):
            equal(value, 0)


def test_rows_name_all_differentiable_inputs() -> None:
    """A gradient that exists is checked; an input that a row leaves out has none."""
    declared: dict[str, set[int]] = {}
    for case in CASES:
        declared.setdefault(case.type, set()).update(case.differentiable)
    for case in CASES:
        with about(case.name):
            assert with_gradients(case) <= declared[case.type]


def with_gradients(case: Case) -> set[int]:
    """The inputs of a row that have a gradient."""
    outputs, feeds = built(case, case.inputs)
    floats = [o for o in outputs if o.dtype.is_floating]
    xs = [t for t in feeds if t.dtype.is_floating]
    has_none = op_named(case.type).grad is None
    # One forbids its gradient, the other's is what a user gives: tests/graph/ops/outside.
    if not floats or not xs or has_none or case.type in ("PreventGradient", "PyFuncStateless"):
        return set()
    with outputs[0].graph.as_default():
        found = gradients(floats, xs)
    return {
        int(x.op.name.removeprefix("input"))
        for x, g in zip(xs, found, strict=True)
        if g is not None
    }


# Aliases


@EACH
def test_memory_is_shared_only_where_declared(case: Case) -> None:
    op_def = op_named(case.type)
    if op_def.aliases is None or op_def.kernel is None or op_def.is_async:
        return
    outputs, feeds, _ = specimen(case)
    op = next(t.op for t in outputs if t.op.type == case.type)
    values = evaluate([*op.inputs], feeds)
    attributes = {n: op.attributes[n] for n in op_def.kernel_attributes(op_def.kernel)}
    values = [np.asarray(v) for v in values]
    with np.errstate(all="ignore"):
        results = op_def.kernel(np, *values, **attributes)
    results = results if isinstance(results, tuple) else (results,)
    for port, result in enumerate(results):
        for place, value in enumerate(values):
            if np.may_share_memory(result, value):
                assert op_def.aliases.get(port) == place


# Expressions

BESIDE = [c for c in CASES if (d := op_named(c.type)).expression and not d.is_inlined]


@each(BESIDE)
def test_an_expression_beside_a_kernel_says_the_same(case: Case) -> None:
    op_def = op_named(case.type)
    assert op_def.expression is not None
    assert op_def.kernel is not None
    for inputs in filter(None, (case.inputs, case.special)):
        outputs, feeds = built(case, inputs)
        op = next(t.op for t in outputs if t.op.type == case.type)
        values = [np.asarray(v) for v in evaluate([*op.inputs], feeds)]
        with np.errstate(all="ignore"):
            attributes = {n: op.attributes[n] for n in op_def.kernel_attributes(op_def.kernel)}
            said = op_def.expression.kernel()(np, *values, **op.attributes)
            equal(op_def.kernel(np, *values, **attributes), said)


# Sessions


@EACH
def test_sessions_agree_with_the_oracle(case: Case) -> None:
    """Both of a session's executors: the second run takes the faster one."""
    outputs, feeds, expected = specimen(case)
    with fb.Session(graph=outputs[0].graph) as sess:
        for _ in range(3):
            for value, wanted in zip(sess.run(outputs, feeds), expected, strict=True):
                # A single string is fetched as bytes.
                value = np.asarray(value, object) if isinstance(value, bytes) else value
                assert value.dtype == wanted.dtype
                equal(value, wanted)


@EACH
def test_what_is_folded_has_the_bits_of_what_is_not(case: Case) -> None:
    """Also of views, which hold values in another order of memory."""
    values = converted(case, case.inputs, natural(case))
    results = []
    for is_fed in (False, True):
        feeds = {}
        with Graph().as_default() as graph:
            tensors = []
            for k, value in enumerate(values):
                if k in case.fixed or not value.ndim or not value.size:
                    tensors.append(fb.constant(value))
                    continue
                base = value.T[::-1].copy()
                tensor = fb.placeholder(base.dtype, base.shape) if is_fed else fb.constant(base)
                if is_fed:
                    feeds[tensor] = base
                tensors.append(fb.transpose(tensor[::-1]))
            graph.seed = 7
            outputs = as_list(case.build(*tensors))
        with fb.Session(graph=graph) as sess:
            results.append([np.asarray(v) for v in sess.run(outputs, feeds)])
    for folded, run in zip(*results, strict=True):
        assert folded.dtype == run.dtype
        assert folded.shape == run.shape
        if folded.dtype.hasobject:
            assert folded.tolist() == run.tolist()
        else:
            assert folded.tobytes() == run.tobytes()


# Costs


@EACH
def test_costs_are_counts(case: Case) -> None:
    for unknown in (False, True):
        outputs, _ = built(case, case.inputs, (lambda v: None) if unknown else np.shape)
        for op in outputs[0].graph.operations:
            assert op.op_def.cost is not None
            cost = op.op_def.cost(op)
            assert isinstance(cost, int)
            assert cost >= 0
