"""An asynchronous operation that completes when a test says so."""

import threading
from typing import Any

import flowbook as fb


class Gate:
    """Asynchronous kernels that complete when the test says so; at once while it is open."""

    def __init__(self) -> None:
        self.is_open = False
        self.waiting: list[Any] = []
        self.cancelled: list[Any] = []
        self.began = threading.Semaphore(0)

    def kernel(self, context: Any, x: Any) -> None:
        if self.is_open:
            context.complete((x,))
            return
        context.on_cancel(lambda: self.cancelled.append(context))
        self.waiting.append((context, x))
        self.began.release()

    def await_begun(self, count: int = 1) -> None:
        for _ in range(count):
            assert self.began.acquire(timeout=60)

    def open(self) -> None:
        for context, x in self.waiting:
            context.complete((x,))


gates: dict[str, Gate] = {}


def _wait_kernel(context: Any, x: Any, gate: str) -> None:
    gates[gate].kernel(context, x)


wait_op = fb.OpDef(
    "StateTestWait",
    "x: T -> y: T",
    T=(fb.float32, fb.float64, fb.int32),
    attributes={"gate": ""},
    infer=lambda x, gate: x.shape,
    kernel=_wait_kernel,
    is_async=True,
    aliases={0: 0},
)
