"""Names of devices: `/job:localhost/task:0/device:cpu:0`, in full or in part (white paper, 3).

A partial name is a constraint: `/device:gpu` admits every GPU, `/job:worker` every device there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from flowbook.graph.errors import InvalidArgumentError

_PART = re.compile(
    r"(?:/job:(?P<job>[A-Za-z_][\w-]*)|/task:(?P<task>\d+)"
    r"|/(?:device:)?(?P<kind>[A-Za-z_]\w*)(?::(?P<index>\d+|\*))?)"
)


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """What is said of a device; None where nothing is."""

    job: str | None = None
    task: int | None = None
    kind: str | None = None
    index: int | None = None

    @staticmethod
    def parse(name: str) -> DeviceSpec:
        """Read a full or partial name; kinds are case-insensitive, `/cpu:0` is `/device:cpu:0`.

        Raises:
            InvalidArgumentError: if the text is not such a name.
        """
        spec, position = DeviceSpec(), 0
        while position < len(name):
            match = _PART.match(name, position)
            if match is None:
                raise InvalidArgumentError(
                    f"{name!r} is not a device name",
                    hint="for example '/device:cpu:0' or '/job:worker/task:1/device:gpu:0'",
                )
            found = match.groupdict()
            if found["job"] is not None:
                spec = replace(spec, job=found["job"])
            elif found["task"] is not None:
                spec = replace(spec, task=int(found["task"]))
            else:
                index = found["index"]
                spec = replace(
                    spec,
                    kind=found["kind"].lower(),
                    index=None if index in (None, "*") else int(index),
                )
            position = match.end()
        return spec

    def merge(self, inner: DeviceSpec) -> DeviceSpec:
        """This constraint, with what `inner` says in place of what it said itself."""
        return DeviceSpec(
            job=self.job if inner.job is None else inner.job,
            task=self.task if inner.task is None else inner.task,
            kind=self.kind if inner.kind is None else inner.kind,
            index=self.index if inner.kind is None else inner.index,
        )

    def admits(self, other: DeviceSpec) -> bool:
        """Whether the device that `other` names in full satisfies this constraint."""
        return (
            self.job in (None, other.job)
            and self.task in (None, other.task)
            and self.kind in (None, other.kind)
            and self.index in (None, other.index)
        )

    def __str__(self) -> str:
        parts = []
        if self.job is not None:
            parts.append(f"/job:{self.job}")
        if self.task is not None:
            parts.append(f"/task:{self.task}")
        if self.kind is not None:
            parts.append(f"/device:{self.kind}")
            if self.index is not None:
                parts.append(f":{self.index}")
        return "".join(parts)
