"""Attributes that make no sense, as a damaged file gives them, of every operation type."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from typing import Any

import pytest

import flowbook as fb
from flowbook.graph.model.errors import OpError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import op_named
from tests.op_cases import CASES, Case
from tests.op_checks import built

# A row of each type that has attributes, and whose attributes are data.
ROWS = {case.type: case for case in reversed(CASES) if op_named(case.type).attributes}
EACH = pytest.mark.parametrize(
    "case",
    [c for c in ROWS.values() if not op_named(c.type).runs_users_code],
    ids=lambda case: case.type,
)

HOSTILE: list[Any] = [
    *(None, -1, 0, 3, 2**31, 2**62, 2**70, -(2**70), True),
    *(1.5, float("nan"), float("inf"), 1j, "", "x", "NCHW", b"\xff"),
    *((), (-1,), (0,), (1, 2), (2**70,), ("a",), (1.5,), (None,), ((1,),), (((),),)),
    *(fb.int32, fb.string, fb.Shape(None), fb.Shape([2**62, 2**62])),
]


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """Whoever asks for more than a few gigabytes is refused, and not killed."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


def prepared(case: Case) -> tuple[Operation, Any]:
    """The operation of a row, and the feeds of its graph."""
    outputs, feeds = built(case, case.inputs)
    return next(t.op for t in outputs if t.op.type == case.type), feeds


@pytest.mark.filterwarnings("ignore::flowbook.graph.model.errors.GraphGrowthWarning")
@EACH
def test_building_and_running_give_named_errors(case: Case) -> None:
    """Nothing but Flowbook's own errors comes out, if any."""
    op, feeds = prepared(case)
    arguments = op.op_def.grouped(op.inputs, op.attributes)
    for name in op.attributes:
        for value in HOSTILE:
            with op.graph.as_default():
                try:
                    op.op_def(*arguments, **{**op.attributes, name: value})
                except OpError:
                    continue
            made = op.graph.operations[-1]
            with fb.Session(graph=op.graph) as sess:
                try:
                    sess.run(list(made.outputs) or made, feeds)
                except fb.errors.InternalError as error:
                    pytest.fail(f"{case.type} {name}={value!r:.40}: {error.message}")
                except OpError:
                    pass


@EACH
def test_loading_gives_named_errors(case: Case) -> None:
    op, _ = prepared(case)
    for name in op.attributes:
        for value in HOSTILE:
            try:
                given = op.op_def.complete({**op.attributes, name: value})
                dtypes, shapes = op.op_def.infer_outputs(op.graph, op.inputs, given)
            except OpError:
                continue
            assert len(dtypes) == len(shapes)


@pytest.mark.parametrize("part", [fb.real, fb.imag, fb.angle, fb.abs])
def test_a_part_of_a_complex_number_has_its_dtype(part: Any) -> None:
    y = part(fb.placeholder(fb.complex64, [2]))
    with pytest.raises(fb.errors.InvalidTypeError, match=r"is made is float32, not fb\.int32"):
        y.op.op_def.infer_outputs(y.graph, y.op.inputs, {"Tout": fb.int32})


def test_an_attribute_is_of_the_kind_of_its_default() -> None:
    for value in (2**70, "yes", None):
        with pytest.raises(fb.errors.InvalidTypeError, match="'keepdims' is of type bool"):
            op_named("Sum")([1.0], axis=None, keepdims=value)
