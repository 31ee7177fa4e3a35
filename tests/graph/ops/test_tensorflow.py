"""Flowbook's operations give what TensorFlow's do, by values recorded from TensorFlow."""

from __future__ import annotations

from functools import cache

import numpy as np

from tests.interpreter import evaluate
from tests.op_cases import FAMILIES, Case
from tests.op_checks import agree, built, each
from tests.record_tensorflow import RECORDED, digest, settings

# The rows that have recorded values, each with the name of its family's file.
RECORDED_CASES = {
    case: family
    for family, module in FAMILIES.items()
    for case in getattr(module, "CASES", ())
    if case.tensorflow is not None
}

# Two ways to compute the same round differently.
ROUNDING = 16


@cache
def recording(family: str) -> dict[str, np.ndarray]:
    with np.load(RECORDED / f"{family}.npz") as file:
        return dict(file)


@each(RECORDED_CASES)
def test_values_are_those_of_tensorflow(case: Case) -> None:
    recorded = recording(RECORDED_CASES[case])
    for setting, inputs in settings(case).items():
        key = f"{case.name}/{setting}"
        assert recorded.get(f"{key}/digest") == digest(inputs), (
            "the row's inputs are not those of the recording; run tests/record_tensorflow.py"
        )
        given = case.inputs if setting == "inputs" else case.special
        outputs, feeds = built(case, given)
        results = evaluate(outputs, feeds)
        assert f"{key}/{len(results)}" not in recorded, "TensorFlow gives more outputs"
        for port, result in enumerate(results):
            wanted = recorded[f"{key}/{port}"]
            result = result.astype(np.bytes_) if result.dtype.hasobject else result
            assert result.dtype.kind == wanted.dtype.kind
            agree(result, wanted, ROUNDING * case.tolerance, inputs)
