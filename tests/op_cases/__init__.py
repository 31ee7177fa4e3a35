"""One row per operation type: inputs to try it on, and a reference to compare it with.

Each file holds the rows of one family as its `CASES`, and what a row of values cannot express as
its `SCENARIOS`. `tests/graph/ops/test_op_cases.py` makes all checks from the rows; a built-in
operation type without a row fails there. Rows that say what TensorFlow calls the operation are also
held against TensorFlow's own values, which `python -m tests.record_tensorflow` recorded.
"""

import importlib
import pkgutil

from tests.op_cases.case import Case, Scenario

FAMILIES = {
    module.name: importlib.import_module(f"{__name__}.{module.name}")
    for module in pkgutil.iter_modules(__path__)
    if module.name != "case"
}

CASES: list[Case] = [c for m in FAMILIES.values() for c in getattr(m, "CASES", ())]
SCENARIOS: list[Scenario] = [s for m in FAMILIES.values() for s in getattr(m, "SCENARIOS", ())]

__all__ = ["CASES", "FAMILIES", "SCENARIOS", "Case", "Scenario"]
