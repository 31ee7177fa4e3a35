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
        states: those of other resources, by the names of the operations that own them. With an
            entropy they are all that had begun: what has no state begins afresh.
        numerics: what the bits of a deterministic session depend on; None of any other.
    """

    values: Mapping[Operation, Any]
    devices: Mapping[Operation, str]
    entropy: int | None
    states: Mapping[str, State]
    numerics: dict[str, str] | None = None

    def state(self) -> dict[str, Any]:
        """All but the values, in JSON's terms."""
        resources = {name: state._asdict() for name, state in self.states.items()}
        return {"entropy": self.entropy, "resources": resources, "numerics": self.numerics}


def read_state(state: Mapping[str, Any]) -> Snapshot:
    """What `Snapshot.state` gave, without any values; DataLossError if it is damaged."""
    try:
        entropy, numerics = state.get("entropy"), state.get("numerics")
        resources = state.get("resources", {}).items()
        states = {name: State(str(each["kind"]), each["state"]) for name, each in resources}
        numerics = None if numerics is None else {str(k): str(v) for k, v in numerics.items()}
    except (AttributeError, KeyError, TypeError):
        raise _damaged() from None
    if entropy is not None and type(entropy) is not int:
        raise _damaged()
    return Snapshot({}, {}, entropy, states, numerics)


def _damaged() -> DataLossError:
    return DataLossError("what the checkpoint says of random operations is damaged")
