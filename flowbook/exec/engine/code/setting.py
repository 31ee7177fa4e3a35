"""What code is written with: what all of it, in one program, has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from flowbook.exec.devices.device import Device
from flowbook.exec.engine.bind import Specs
from flowbook.exec.engine.code.tally import Tallies
from flowbook.exec.engine.under_way import Executions


class Setting(NamedTuple):
    """What all code of a program has in common.

    Attributes:
        known: constants and handles, by value.
        specs: what is known of values before the step.
        device: where it runs.
        is_wary: whether what kernels give is checked against what was inferred.
        tallies: where code keeps what its loops and branches did.
        executions: the session's steps, which end where that is closed.
        may_stop: whether a step whose deadline has passed may be left; None if it always may.
    """

    known: Mapping[int, Any]
    specs: Specs
    device: Device
    is_wary: bool
    tallies: Tallies
    executions: Executions
    may_stop: Callable[[], bool] | None = None
