"""Queues: what a row of values cannot express."""

from __future__ import annotations

from tests.op_cases.case import Scenario

SCENARIOS = [
    Scenario(type, "tests/graph/ops/queues/test_queues.py")
    for type in (
        "FIFOQueue",
        "PaddingFIFOQueue",
        "PriorityQueue",
        "QueueClose",
        "QueueDequeue",
        "QueueDequeueMany",
        "QueueDequeueUpTo",
        "QueueEnqueue",
        "QueueEnqueueMany",
        "QueueIsClosed",
        "QueueRunner",
        "QueueSelect",
        "QueueSize",
        "RandomShuffleQueue",
    )
]
