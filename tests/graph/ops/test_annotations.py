"""What type checkers are told that a definition builds is what its signature says."""

from __future__ import annotations

import sys

import flowbook as fb
from flowbook.graph.model.registry import op_definitions
from tests.op_checks import about

# Made by functions that are annotated themselves.
SAMPLERS = {"UniformCandidateSampler", "LogUniformCandidateSampler", "FixedUnigramCandidateSampler"}
PYTHON_FUNCTIONS = {"PyFunc", "PyFuncStateless"}
CALLS = {"Call", "ActingCall"}
# Built in the place of others.
OF_OTHERS = {d.with_axis_input.type for d in op_definitions().values() if d.with_axis_input}


def annotations() -> dict[str, str]:
    """Return the annotation of each operation type that has one, as it is written."""
    return {
        vars(module)[name].type: annotation
        for module in list(sys.modules.values())
        for name, annotation in getattr(module, "__annotations__", {}).items()
        if module.__name__.startswith("flowbook.") and annotation.startswith("OpDef")
    }


ANNOTATIONS = annotations()


def built(op_def: fb.OpDef) -> set[str]:
    """Return the annotations that fit a signature."""
    lists = [argument.is_list for argument in op_def.outputs]
    if not lists:
        return {"OpDef[Operation]"}
    if len(lists) == 1:
        return {"OpDef[list[Tensor]]"} if lists[0] else {"OpDef"}
    if any(lists):
        return {"OpDef[tuple[Tensor, ...]]"}
    return {f"OpDef[tuple[{', '.join(['Tensor'] * len(lists))}]]", "OpDef[tuple[Tensor, ...]]"}


def test_annotations_fit_the_signatures() -> None:
    apart = SAMPLERS | PYTHON_FUNCTIONS | CALLS | OF_OTHERS
    annotated = [d for d in op_definitions().values() if d.is_builtin and d.type not in apart]
    assert len(annotated) > 100
    for op_def in annotated:
        with about(op_def.type):
            assert ANNOTATIONS.get(op_def.type, "OpDef") in built(op_def)
