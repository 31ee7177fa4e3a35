"""What a session holds at one moment, between two steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flowbook.graph.model.errors import DataLossError
from flowbook.graph.model.operation import Operation


class State(NamedTuple):
    """What is kept of a resource that is no variable, such as how much a random operation drew.

    Attributes:
        kind: the name of its kind.
        state: in JSON's terms.
    """

    kind: str
    state: Any


class Snapshot(NamedTuple):
    """What a session holds, or is to hold.

    Attributes:
        values: those of variables, each named by its handle's operation; they stay as they are.
        devices: where the variables live.
        entropy: what the session's random operations without a seed begin with; None leaves it.
        states: those of other resources, by the names of the operations that own them.
    """

    values: Mapping[Operation, Any]
    devices: Mapping[Operation, str]
    entropy: int | None
    states: Mapping[str, State]

    def state(self) -> dict[str, Any]:
        """All but the values, in JSON's terms."""
        resources = {name: state._asdict() for name, state in self.states.items()}
        return {"entropy": self.entropy, "resources": resources}


def read_state(state: Mapping[str, Any]) -> tuple[int | None, dict[str, State]]:
    """The entropy and the states of what `Snapshot.state` gave; DataLossError if it is damaged."""
    try:
        entropy = state.get("entropy")
        resources = state.get("resources", {}).items()
        states = {name: State(str(each["kind"]), each["state"]) for name, each in resources}
    except (AttributeError, KeyError, TypeError):
        states, entropy = {}, False
    if entropy is not None and type(entropy) is not int:
        raise DataLossError("the states of random operations in the checkpoint are damaged")
    return entropy, states
