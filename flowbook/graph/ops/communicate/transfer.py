"""The operations by which a value goes from one device to another (white paper, section 3.2.2).

Nobody builds them: partitioning puts a pair wherever a value is used on another device than it is
made on. They meet in the rendezvous of the step, under the pair's key. Where half of the bits will
do, one operation before the pair and one after it see to that (section 5.5).
"""

from __future__ import annotations

from typing import Any, Protocol

from flowbook.graph.definition.async_context import AsyncContext
from flowbook.graph.definition.inference import nothing
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.dtypes import ANYTHING
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN
from flowbook.graph.numerics.truncation import filled, truncated


class Port(Protocol):
    """A device's door to the rendezvous of a step, in one iteration."""

    def send(self, key: str, value: Any) -> None:
        """Have a value delivered to whoever receives under a key."""

    def receive(self, key: str, source: str, context: AsyncContext, on_host: bool) -> None:
        """Complete a call with what a device sends, in host memory or this device's."""

    def fetch(self, value: Any) -> Any:
        """A value of the device in host memory."""


def _sent(xp: Any, port: Port, value: Any, key: str) -> None:
    port.send(key, value)


def _received(context: AsyncContext, port: Port, key: str, source: str, on_host: bool) -> None:
    port.receive(key, source, context, on_host)


send_op: OpDef[Operation] = OpDef(
    "Send",
    "port: variant, value: T ->",
    T=ANYTHING,
    attributes={"key": REQUIRED},
    infer=nothing,
    kernel=_sent,
    sees_dead=True,
    only_moves=True,
)

receive_op: OpDef = OpDef(
    "Recv",
    "port: variant -> value: dtype",
    attributes={
        "key": REQUIRED,
        "source": REQUIRED,
        "dtype": REQUIRED,
        "on_host": False,
        "may_be_dead": False,
    },
    infer=lambda port, key, source, dtype, on_host, may_be_dead: UNKNOWN,
    kernel=_received,
    is_async=True,
    only_moves=True,
)

truncate_op: OpDef = OpDef(
    "TruncateTo16Bits",
    "value: float32 -> bits: uint16",
    infer=lambda value: value.shape,
    kernel=truncated,
    only_moves=True,
)

fill_op: OpDef = OpDef(
    "FillTo32Bits",
    "bits: uint16 -> value: float32",
    infer=lambda bits: bits.shape,
    kernel=filled,
    only_moves=True,
)

# What decides what a kernel computes, such as a shape, is wanted in host memory.
fetch_op: OpDef = OpDef(
    "Fetch",
    "port: variant, value: T -> output: T",
    T=ANYTHING,
    infer=lambda port, value: value.shape,
    kernel=lambda xp, port, value: port.fetch(value),
    aliases=None,
    only_moves=True,
)
