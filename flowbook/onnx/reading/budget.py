"""How much of a model may be built one by one, in all: a small model may ask for very much."""

from __future__ import annotations

from flowbook.graph.model.errors import ResourceExhaustedError

# Steps of loops and recurrences, parts of tensors, windows: each becomes operations of its own.
MOST_PIECES = 20_000


class Budget:
    """What the nodes of one model may still build one by one."""

    def __init__(self) -> None:
        self._left = MOST_PIECES

    def spend(self, pieces: int, what: str) -> None:
        """Take so many pieces.

        Args:
            pieces: how many.
            what: what wants them, for the error.

        Raises:
            ResourceExhaustedError: if fewer are left.
        """
        if pieces > self._left:
            raise ResourceExhaustedError(
                f"{what} asks for {pieces} pieces built one by one, of which a model may have "
                f"{MOST_PIECES} in all, and this one {self._left} more"
            )
        self._left -= pieces
