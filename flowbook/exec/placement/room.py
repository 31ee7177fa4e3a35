"""Whether what is placed on devices fits into their memory.

Counted is what stays in a device's memory, its variables, and besides it what the largest of its
operations takes and gives. What else lies there meanwhile only the course of the step tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Need(NamedTuple):
    """The bytes that a group needs.

    Attributes:
        stays: of its variables.
        passes: of what the largest of its operations takes and gives.
    """

    stays: int = 0
    passes: int = 0


class Room:
    """The memory of devices, as groups take it.

    Args:
        limits: the bytes of each device; None for any.
        needs: what each group needs.
        taken: of each device what is taken already; nothing by default.
    """

    def __init__(
        self, limits: Sequence[int | None], needs: Sequence[Need], taken: Sequence[Need] = ()
    ) -> None:
        self._limits = limits
        self._needs = needs
        self._stays = [need.stays for need in taken] or [0] * len(limits)
        self._passes = [need.passes for need in taken] or [0] * len(limits)

    @property
    def taken(self) -> Sequence[Need]:
        """Of each device what is taken."""
        return [*map(Need, self._stays, self._passes)]

    def fits(self, group: int, device: int) -> bool:
        """Whether a device has room for a group beside those that took theirs."""
        limit, need = self._limits[device], self._needs[group]
        return limit is None or (
            self._stays[device] + need.stays + max(self._passes[device], need.passes) <= limit
        )

    def take(self, group: int, device: int) -> None:
        """Have a group take its room on a device."""
        need = self._needs[group]
        self._stays[device] += need.stays
        self._passes[device] = max(self._passes[device], need.passes)

    def take_all(self, chosen: Sequence[int]) -> None:
        """Have each group take its room on the device that is chosen for it."""
        for group, device in enumerate(chosen):
            self.take(group, device)

    def fit(self, chosen: Sequence[int]) -> bool:
        """Whether there is room for all groups on the devices that are chosen for them."""
        return self.overfull(chosen) is None

    def overfull(self, chosen: Sequence[int]) -> int | None:
        """The first device that has not enough for the groups that it is chosen for."""
        if all(limit is None for limit in self._limits):
            return None
        whole = Room(self._limits, self._needs)
        for group, device in enumerate(chosen):
            if not whole.fits(group, device):
                return device
            whole.take(group, device)
        return None
