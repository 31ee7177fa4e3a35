"""State: what a row of values cannot express."""

from __future__ import annotations

from tests.op_cases.case import Scenario

SCENARIOS = [
    *(
        Scenario(type, "tests/graph/ops/tables/test_mutable_tables.py")
        for type in (
            "MutableHashTable",
            "TableExport",
            "TableFind",
            "TableInsert",
            "TableRemove",
            "TableSize",
        )
    ),
    *(
        Scenario(type, "tests/exec/session/test_session_tensors.py")
        for type in (
            "DeleteSessionTensor",
            "GetSessionHandle",
            "GetSessionTensor",
            "SessionTensors",
        )
    ),
    *(
        Scenario(type, "tests/graph/ops/state/test_variables.py")
        for type in (
            "Variable",
            "ReadVariable",
            "IsInitialized",
            "Assign",
            "AssignAdd",
            "AssignSub",
            "ScatterAdd",
            "ScatterSub",
            "ScatterUpdate",
            "VariableGather",
            "CountUpTo",
        )
    ),
]
