"""One row per operation type: inputs to try it on, and a reference to compare it with.

Folders are those of `flowbook/graph/ops`. Each file holds the rows of one family as its `CASES`,
and what a row of values cannot express as its `SCENARIOS`. `tests/graph/ops/test_op_cases.py` makes
all checks from the rows; a built-in operation type without a row fails there. Rows that say what
TensorFlow calls the operation are also held against TensorFlow's own values, which
`python -m tests.record_tensorflow` recorded.
"""

import importlib
import pkgutil

from tests.op_cases import case, run_axes
from tests.op_cases.case import Case, Scenario
from tests.op_cases.run_axes import with_axis_input

FAMILIES = {
    module.name.rpartition(".")[2]: importlib.import_module(module.name)
    for module in pkgutil.walk_packages(__path__, f"{__name__}.")
    if not module.ispkg and module.name not in (case.__name__, run_axes.__name__)
}

_WRITTEN: list[Case] = [c for m in FAMILIES.values() for c in getattr(m, "CASES", ())]
CASES = [*_WRITTEN, *filter(None, map(with_axis_input, _WRITTEN))]
SCENARIOS: list[Scenario] = [s for m in FAMILIES.values() for s in getattr(m, "SCENARIOS", ())]

__all__ = ["CASES", "FAMILIES", "SCENARIOS", "Case", "Scenario"]
