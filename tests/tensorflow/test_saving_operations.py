"""Every row of `tests/op_cases` whose type can be written for TensorFlow, written and read back.

Both ways are held against each other: what `fb.tensorflow.load` makes of what `fb.tensorflow.save`
wrote gives what the session gives. What cannot be written must say so. That TensorFlow itself
computes the same, `tests/check_tensorflow.py` finds where it is installed.
"""

from __future__ import annotations

from functools import cache
from itertools import groupby, islice
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.tensorflow.written import RULES, loops, outside, routing, state
from tests.op_cases import CASES
from tests.op_cases.case import Case
from tests.op_checks import built

# A few rows of each type: `tests/check_tensorflow.py` tries all.
ROWS = [
    case
    for _, cases in groupby((c for c in CASES if c.type in RULES), lambda c: c.type)
    for case in islice(cases, 3)
]
# What rows have not, but loops and models: `test_save.py` writes them.
IN_MODELS = {*loops.RULES, *outside.RULES, *routing.RULES, *state.RULES}
IN_MODELS |= {"Const", "LRN", "NoOp", "Placeholder"}


@cache
def saved(case: Case) -> tuple[Any, list[Any], dict[str, Any], list[str]]:
    """The graph, what the session computes, the feeds, and the names of the outputs."""
    outputs, feeds = built(case, case.inputs)
    with fb.Session(graph=outputs[0].graph) as sess:
        wanted = sess.run(outputs, feeds)
        message = fb.tensorflow.save(outputs, session=sess)
    return message, wanted, {t.name: v for t, v in feeds.items()}, [t.name for t in outputs]


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
def test_a_row_is_written_or_refused(case: Case) -> None:
    try:
        message, wanted, feeds, names = saved(case)
    except fb.errors.UnimplementedError:
        return
    graph = fb.Graph()
    model = fb.tensorflow.load(message, graph=graph)
    with fb.Session(graph=graph) as sess:
        found = sess.run([model[n] for n in names], {model[n]: v for n, v in feeds.items()})
    for value, right in zip(found, wanted, strict=True):
        assert np.asarray(value).dtype == np.asarray(right).dtype
        if np.asarray(right).dtype == object:
            assert np.array_equal(value, right)
            continue
        np.testing.assert_allclose(value, right, rtol=2e-5, atol=1e-6)


def test_every_type_with_a_rule_has_a_row_that_is_written() -> None:
    written = set()
    for case in ROWS:
        if case.type not in written:
            try:
                saved(case)
            except fb.errors.UnimplementedError:
                continue
            written.add(case.type)
    assert RULES.keys() - written <= IN_MODELS
