"""What `sess.explain` predicts for a step, beside what the step takes.

The machine is calibrated in the same process first, into a folder of its own. Predicted is by
shapes alone: no step has been run or traced then. The calibration times networks of other sizes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.case import Case, Near, Row
from benchmarks.models import training
from benchmarks.rows import cifar, lstm, mlp

_TARGET = Near(0.3)


def _predicted(trained: Callable[[Any], tuple[Any, Any, Any]], fb: Any) -> Case:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FLOWBOOK_CACHE"] = folder
        fb.calibrate()
    session, fetches, feeds = trained(fb)
    plan = session.explain(fetches, feeds)
    case = training(lambda: session.run(fetches, feeds)[0])
    return replace(case, predicted=plan.seconds)


def _row(name: str, title: str, trained: Callable[[Any], tuple[Any, Any, Any]]) -> Row:
    return Row(
        name=f"predicted_{name}",
        title=f"{title}, as `sess.explain` predicts it after `fb.calibrate`",
        cases={"flowbook": partial(_predicted, trained)},
        target=_TARGET,
        unit="ms",
        rounds=20,
    )


ROWS = (
    _row("mlp", "MLP 784-500-10, batch 100, one SGD step", mlp.trained),
    _row("lstm", "LSTM 2 x 200, 20 steps unrolled, one SGD step", lstm.trained),
    _row("cifar10", "CIFAR-10 tutorial network, batch 128, one SGD step", cifar.trained),
)
