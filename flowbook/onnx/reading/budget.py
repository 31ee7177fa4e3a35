"""How much reading a model may build and compute, in all: a small model may ask for very much."""

from __future__ import annotations

from flowbook.graph.model.errors import ResourceExhaustedError

# Steps of loops and recurrences, parts of tensors, windows: each becomes operations of its own.
MOST_PIECES = 20_000

# Elements of what is computed while a model is read, as the places that windows lie at.
MOST_COMPUTED = 1 << 24


_BUILT, _COMPUTED = "pieces built one by one", "elements computed while it is read"


class Budget:
    """What the nodes of one model may still build one by one, and compute."""

    def __init__(self) -> None:
        self._most = {_BUILT: MOST_PIECES, _COMPUTED: MOST_COMPUTED}
        self._left = dict(self._most)

    def spend(self, pieces: int, what: str) -> None:
        """Take so many pieces.

        Args:
            pieces: how many.
            what: what wants them, for the error.

        Raises:
            ResourceExhaustedError: if fewer are left.
        """
        self._take(_BUILT, pieces, what)

    def compute(self, elements: int, what: str) -> None:
        """Take so many elements that are computed while the model is read, as `spend` does."""
        self._take(_COMPUTED, elements, what)

    def _take(self, of: str, count: int, what: str) -> None:
        if count > self._left[of]:
            raise ResourceExhaustedError(
                f"{what} asks for {count} {of}, of which a model may have {self._most[of]} in all, "
                f"and this one {self._left[of]} more"
            )
        self._left[of] -= count
