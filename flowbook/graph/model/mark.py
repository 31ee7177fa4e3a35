"""What operations say that compute nothing, and are in the graph to say something of others."""

from enum import Enum

__all__ = ["Mark"]


class Mark(Enum):
    """What an operation says of those that it waits for."""

    UPDATE = "a change of state that belongs to a loss"
    TRAINING = "an optimizer's step"
    RUNNER = "what threads run to fill the queue that it takes"
