"""Candidate samplers: what they draw is held against the distribution, not against values."""

from __future__ import annotations

import numpy as np

from flowbook.graph.ops.nn import candidate_sampling
from tests.op_cases.case import Array, Case, Scenario

RIGHT = np.array([[1, 2], [2, 2], [5, 0]])
DRAWN = np.array([2, 0, 7, 5])


def _hits(right: Array, drawn: Array) -> tuple[Array, Array, Array]:
    found = [
        (row, place)
        for row, classes in enumerate(right)
        for k in classes
        for place, d in enumerate(drawn)
        if d == k
    ]
    rows, places = np.array(found, int).reshape(-1, 2).T
    return rows, places, np.full(len(rows), np.finfo(np.float32).min)


CASES = [
    Case(
        "ComputeAccidentalHits",
        lambda right, drawn: candidate_sampling.compute_accidental_hits(right, drawn, 2),
        [RIGHT, DRAWN],
        _hits,
        by_value=True,
        tensorflow=lambda tf, right, drawn: list(
            tf.compat.v1.nn.compute_accidental_hits(right, drawn, 2)
        ),
    ),
    Case(
        "ComputeAccidentalHits",
        lambda right, drawn: candidate_sampling.compute_accidental_hits(right, drawn, 2),
        [RIGHT, np.array([2, 0, 2, 7])],
        _hits,
        by_value=True,
        note="repeated",
    ),
]

SCENARIOS = [
    Scenario(type, "tests/graph/ops/nn/test_candidate_sampling.py")
    for type in (
        "UniformCandidateSampler",
        "LogUniformCandidateSampler",
        "FixedUnigramCandidateSampler",
    )
]
