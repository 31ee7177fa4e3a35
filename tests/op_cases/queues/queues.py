"""Queues: what a row of values cannot express."""

from __future__ import annotations

from tests.op_cases.case import Scenario

SCENARIOS = [
    *(
        Scenario(type, "tests/graph/ops/queues/test_mutex.py")
        for type in ("Mutex", "MutexAcquire", "MutexRelease")
    ),
    *(
        Scenario(type, "tests/graph/ops/queues/test_synchronisation.py")
        for type in (
            "AccumulatorApply",
            "AccumulatorSetStep",
            "AccumulatorSize",
            "AccumulatorTake",
            "Barrier",
            "BarrierClose",
            "BarrierInsertMany",
            "BarrierSizes",
            "BarrierTakeMany",
            "ConditionalAccumulator",
            "SparseAccumulatorApply",
            "SparseAccumulatorTake",
            "SparseConditionalAccumulator",
        )
    ),
    *(
        Scenario(type, "tests/graph/ops/queues/test_queues.py")
        for type in (
            "BucketQueue",
            "FIFOQueue",
            "PaddingFIFOQueue",
            "PriorityQueue",
            "QueueClose",
            "QueueDequeue",
            "QueueDequeueBucket",
            "QueueDequeueMany",
            "QueueDequeueUpTo",
            "QueueEnqueue",
            "QueueEnqueueMany",
            "QueueIsClosed",
            "QueueRunner",
            "QueueSelect",
            "QueueSize",
            "RandomShuffleQueue",
            "StackQueue",
        )
    ),
    Scenario("NextElement", "tests/train/input/test_generators.py"),
    Scenario("SourceQueue", "tests/train/input/test_batches.py"),
    Scenario("SavedQueue", "tests/train/input/test_resuming.py"),
    *(
        Scenario(type, "tests/graph/ops/queues/test_readers.py")
        for type in (
            "FixedLengthRecordReader",
            "IdentityReader",
            "ReaderNumRecordsProduced",
            "ReaderNumWorkUnitsCompleted",
            "ReaderRead",
            "ReaderReadUpTo",
            "ReaderReset",
            "ReaderRestoreState",
            "ReaderSerializeState",
            "TFRecordReader",
            "TextLineReader",
            "WholeFileReader",
        )
    ),
    Scenario("NpzReader", "tests/graph/ops/queues/test_array_readers.py"),
    Scenario("ParquetReader", "tests/graph/ops/queues/test_array_readers.py"),
]
