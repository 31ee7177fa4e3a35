"""Flowbook's operations give what TensorFlow's do, by values recorded from TensorFlow."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.interpreter import evaluate
from tests.op_cases import FAMILIES, Case
from tests.op_checks import agree, built
from tests.record_tensorflow import RECORDED, digest, settings

RECORDED_CASES = [
    pytest.param(family, case, id=case.name)
    for family, module in FAMILIES.items()
    for case in getattr(module, "CASES", ())
    if case.tensorflow is not None
]

# Two ways to compute the same round differently.
ROUNDING = 16


@cache
def recording(family: str) -> dict[str, np.ndarray]:
    with np.load(RECORDED / f"{family}.npz") as file:
        return dict(file)


@pytest.mark.parametrize(("family", "case"), RECORDED_CASES)
def test_values_are_those_of_tensorflow(family: str, case: Case) -> None:
    recorded = recording(family)
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
