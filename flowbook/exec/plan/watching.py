"""Instruments: what watches runs. A program becomes a program plus a sink of events.

There are three things that an instrument may do with a signature. It may rewrite the program, which
stays plain data: a guard adds nodes that check values, and a trace has it noted when kernels run.
It may tap the signature: ask for further tensors in some of its runs, and take their values:
summaries do so. And it may surround the runs: a trace does so too. Everything else that watches
runs is made of these; none of it lives in the session.

An instrument that rewrites is known by its configuration: two that are equal make the same program,
so that one asked for again finds what the first one left prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from flowbook.exec.plan.program import Program
from flowbook.exec.signature.signature import Signature
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor

# Takes a signature made ready to run, the fed values and the deadline, and gives the fetched ones.
Run = Callable[[Any, Sequence[Any], float | None], Sequence[Any]]


class Tap(Protocol):
    """What an instrument takes from the runs of one signature.

    Attributes:
        tensors: what it wants to know of a run for which it is due.
    """

    tensors: Sequence[Tensor]

    def begin(self) -> Callable[[Sequence[Any]], None] | None:
        """Asked once before each run: what takes the values when it has ended without an error.

        None says that nothing of this run is wanted.
        """


class Instrument:
    """What may watch the runs of a session; it does nothing unless a subclass says so.

    Attributes:
        rewrites: whether it rewrites programs. If so, it is compared by its configuration.
    """

    rewrites = False

    def rewritten(self, program: Program, has_late_feeds: bool) -> Program:
        """The program that runs instead.

        Args:
            program: the program, rewritten by those before.
            has_late_feeds: whether some of its feeds arrive after the step has begun.
        """
        return program

    def tap(self, signature: Signature, operations: Sequence[Operation]) -> Sequence[Tap]:
        """What it takes from the runs of a signature.

        Args:
            signature: what is asked for.
            operations: all operations that it needs.
        """
        return ()

    def around(self, operations: Mapping[int, Operation], run: Run) -> Run:
        """What runs a signature in place of what does.

        Args:
            operations: those that the nodes of its program stand for, by their ids.
            run: what runs it, under the instruments before.
        """
        return run

    def close(self) -> None:
        """Be done: no more runs will come."""
