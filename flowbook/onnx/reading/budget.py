"""How much reading a model may build and compute, in all: a small model may ask for very much."""

from __future__ import annotations

from flowbook.graph.model.errors import ResourceExhaustedError

# Steps of loops and recurrences, parts of tensors, windows: each becomes operations of its own.
MOST_PIECES = 20_000

# Elements of what is computed while a model is read, as the places that windows lie at.
MOST_COMPUTED = 1 << 24


class Budget:
    """What the nodes of one model may still build one by one, and compute."""

    def __init__(self) -> None:
        self._left = MOST_PIECES
        self._left_to_compute = MOST_COMPUTED

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

    def compute(self, elements: int, what: str) -> None:
        """Take so many elements that are computed while the model is read.

        Args:
            elements: how many.
            what: what wants them, for the error.

        Raises:
            ResourceExhaustedError: if fewer are left.
        """
        if elements > self._left_to_compute:
            raise ResourceExhaustedError(
                f"{what} asks for {elements} elements computed while it is read, of which a model "
                f"may have {MOST_COMPUTED} in all, and this one {self._left_to_compute} more"
            )
        self._left_to_compute -= elements
