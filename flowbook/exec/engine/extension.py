"""First runs of signatures that an earlier one computes nearly all of (white paper, section 2).

Someone at a notebook adds a few operations to what has run, and looks at their values. Preparing
all of it anew would take most of the time, so the first run goes through the steps that are there,
and then through a step of what was added. The values are the same: what was added is pure, and it
takes all that the earlier signature fetches, so that nothing runs that it does not need. Whoever
comes back to a signature has it prepared as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple, Protocol

from flowbook.exec.engine.executable import Executable
from flowbook.exec.engine.instrument import Signature
from flowbook.graph.definition.op_def import Effects
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor

# Steps with fewer nodes are prepared in a millisecond.
LEAST_NODES = 200
# So many operations are looked at for what was added.
MOST_ADDED = 100
# So many steps follow one another before all is prepared as a whole.
MOST_STEPS = 32


class Runs(Protocol):
    """What prepares and runs single steps: a master."""

    def executable(self, signature: Signature) -> Executable:
        """What runs a signature."""

    def run(
        self, executable: Executable, feeds: Sequence[Any], deadline: float | None
    ) -> Sequence[Any]:
        """Run one step."""


class Extension:
    """A signature as steps that follow one another.

    Args:
        master: runs the steps.
        signature: what is asked for, without targets or late feeds.
        steps: each but the first is fed with what the first is, and all that the one before it
            fetches.

    Attributes:
        is_stale: whether it used old definitions when it was last asked for (see `check_stale`).
    """

    # The master sees to that for each of the steps.
    is_initialized = True

    def __init__(self, master: Runs, signature: Signature, steps: tuple[Executable, ...]) -> None:
        self.is_stale = False
        self.steps = steps
        self._master = master
        self._signature = signature
        self._has_run = False
        self._whole: Executable | None = None

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations that the signature needs; constants that several steps need repeat."""
        return tuple(chain.from_iterable(step.operations for step in self.steps))

    @property
    def is_dropped(self) -> bool:
        """Whether the master keeps what it consists of no longer."""
        if self._whole is not None:
            return self._whole.is_dropped
        return any(step.is_dropped for step in self.steps)

    def run(self, feeds: Sequence[Any], deadline: float | None = None) -> Sequence[Any]:
        """Run one step of the whole; see `Executable.run`."""
        if self._has_run:
            if self._whole is None:
                self._whole = self._master.executable(self._signature)
            return self._master.run(self._whole, feeds, deadline)
        self._has_run = True
        found: Sequence[Any] = ()
        for step in self.steps:
            found = self._master.run(step, [*feeds, *found], deadline)
        return found


class _Ready(NamedTuple):
    """What has been asked for: its signature, and the steps that compute it."""

    signature: Signature
    steps: tuple[Executable, ...]

    @property
    def is_dropped(self) -> bool:
        return any(step.is_dropped for step in self.steps)


class Extensions:
    """What a master has that others can begin with, by what it fetches."""

    def __init__(self, master: Runs) -> None:
        self._master = master
        self._ready: dict[Tensor, _Ready] = {}

    def note(self, signature: Signature, made: Executable | Extension) -> None:
        """Let what was made for a signature be the beginning of others."""
        steps = made.steps if isinstance(made, Extension) else (made,)
        fetches = signature.fetches
        is_plain = len(set(fetches)) == len(fetches) and not signature.targets
        if is_plain and steps[0].size >= LEAST_NODES and not any(signature.is_late):
            ready = _Ready(signature, steps)
            self._ready.update(dict.fromkeys(fetches, ready))

    def forget_dropped(self) -> None:
        """Let go of what the master keeps no longer."""
        self._ready = {t: ready for t, ready in self._ready.items() if not ready.is_dropped}

    def clear(self) -> None:
        """Let go of everything."""
        self._ready.clear()

    def extended(self, signature: Signature) -> Extension | None:
        """A signature as what is there and one step more, if it is that."""
        if not self._ready or signature.targets or any(signature.is_late):
            return None
        ready = self._beginning(signature)
        if ready is None or ready.is_dropped or len(ready.steps) >= MOST_STEPS:
            return None
        feeds = signature.feeds + ready.signature.fetches
        for step in ready.steps:
            # Code for it costs as much as some such runs.
            step.is_spared = True
        last = self._master.executable(Signature(signature.fetches, (), feeds))
        return Extension(self._master, signature, (*ready.steps, last))

    def _beginning(self, signature: Signature) -> _Ready | None:
        """What fetches exactly those tensors that the signature adds operations to."""
        fed = set(signature.feeds)
        found: dict[Tensor, _Ready] = {}
        added: set[Operation] = set()
        stack = list(signature.fetches)
        while stack:
            tensor = stack.pop()
            if tensor in fed or tensor in found or tensor.op in added:
                continue
            ready = self._ready.get(tensor)
            if ready is not None and ready.signature.feeds == signature.feeds:
                found[tensor] = ready
                continue
            if len(added) == MOST_ADDED or not _is_plain(tensor.op):
                return None
            added.add(tensor.op)
            stack.extend(tensor.op.inputs)
        beginnings = list(dict.fromkeys(found.values()))
        if len(beginnings) != 1 or set(beginnings[0].signature.fetches) != set(found):
            return None
        # What is older may run among the earlier steps already, and would run twice.
        newest = max(tensor.op.id for tensor in found)
        if any(op.id < newest and op.type != "Const" for op in added):
            return None
        return beginnings[0]


def _is_plain(operation: Operation) -> bool:
    """Whether it does the same whether or not a step began before it."""
    op_def = operation.op_def
    return (
        op_def.effects is Effects.PURE
        and op_def.resource is None
        and op_def.type != "Placeholder"
        and not op_def.is_async
        and not operation.control_inputs
        and not operation.settled_by
    )
