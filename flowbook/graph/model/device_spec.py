"""Names of devices: `/job:localhost/task:0/device:cpu:0`, in full or in part (white paper, 3).

A partial name is a constraint: `/device:gpu` admits every GPU, `/job:worker` every device there.
TensorFlow 1 also numbers replicas of a job; here tasks do, and `/replica:0` says nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from flowbook.graph.model.errors import InvalidArgumentError

_PART = re.compile(
    r"(?:/job:(?P<job>[A-Za-z_][\w-]*)|/task:(?P<task>\d{1,9})|/replica:(?P<replica>\d{1,9})"
    r"|/(?:device:)?(?P<kind>[A-Za-z_]\w*)(?::(?P<index>\d{1,9}|\*))?)"
)


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """What is said of a device; None where nothing is."""

    job: str | None = None
    task: int | None = None
    kind: str | None = None
    index: int | None = None

    @staticmethod
    @lru_cache(maxsize=1024)
    def parse(name: str) -> DeviceSpec:
        """Read a full or partial name; kinds are case-insensitive, `/cpu:0` is `/device:cpu:0`.

        The first "/" may be left out, as in "cpu:0".

        Raises:
            InvalidArgumentError: if the text is not such a name.
        """
        spec, position = DeviceSpec(), 0
        whole = f"/{name}" if ":" in name.partition("/")[0] else name
        while position < len(whole):
            match = _PART.match(whole, position)
            if match is None:
                raise InvalidArgumentError(
                    f"{name!r:.80} is not a device name",
                    hint="for example '/device:cpu:0' or '/job:worker/task:1/device:gpu:0'",
                )
            found = match.groupdict()
            if found["job"] is not None:
                if spec.job is not None:
                    raise InvalidArgumentError(f"{name!r} names two jobs")
                spec = replace(spec, job=found["job"])
            elif found["task"] is not None:
                if spec.task is not None:
                    raise InvalidArgumentError(f"{name!r} names two tasks")
                spec = replace(spec, task=int(found["task"]))
            elif found["replica"] is not None:
                if int(found["replica"]):
                    raise InvalidArgumentError(
                        f"{name!r} names a replica, which jobs here do not have",
                        hint="the processes of a job are its tasks, as in '/job:worker/task:1'",
                    )
            elif spec.kind is not None:
                raise InvalidArgumentError(f"{name!r} names two devices")
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
        """This constraint, with what `inner` says in place of what it said itself.

        Among devices of another kind an index means another device, so it goes with the kind.
        """
        is_other_kind = inner.kind not in (None, self.kind)
        return DeviceSpec(
            job=self.job if inner.job is None else inner.job,
            task=self.task if inner.task is None else inner.task,
            kind=self.kind if inner.kind is None else inner.kind,
            index=inner.index if is_other_kind or inner.index is not None else self.index,
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
