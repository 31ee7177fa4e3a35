"""Random states: what determines the numbers, and that threads share none."""

from collections.abc import Sequence

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.resources.random_state import DEFAULT_GRAPH_SEED, RandomState
from tests.exec.state.threads import run_together


def draw(state: RandomState, *shapes: Sequence[int]) -> np.ndarray:
    return np.concatenate([state.uniform(np.array(s), fb.float32).ravel() for s in shapes])


def test_numbers_go_on_from_run_to_run() -> None:
    whole = draw(RandomState("r", 1, 2, 0), [12])
    np.testing.assert_array_equal(draw(RandomState("r", 1, 2, 0), [4], [2, 2], [4]), whole)


def test_default_seed_comes_from_the_name() -> None:
    same = [draw(RandomState(name, 7, None, 0), [8]) for name in ("a", "a", "b")]
    np.testing.assert_array_equal(same[0], same[1])
    assert not np.array_equal(same[0], same[2])


def test_entropy_counts_only_without_seeds() -> None:
    def differs(graph_seed: int | None, seed: int | None) -> bool:
        one, two = (draw(RandomState("r", graph_seed, seed, e), [8]) for e in (1, 2))
        return not np.array_equal(one, two)

    assert differs(None, None)
    assert not differs(7, None)
    assert not differs(None, 7)
    assert not differs(7, 7)


def test_operation_seed_alone_is_used_with_the_default_graph_seed() -> None:
    alone = draw(RandomState("r", None, 5, 99), [8])
    both = draw(RandomState("other", DEFAULT_GRAPH_SEED, 5, 0), [8])
    np.testing.assert_array_equal(alone, both)


@pytest.mark.parametrize("shape", [[], [0], [2, 0, 3], [1], [5]])
def test_every_shape_is_drawn(shape: list[int]) -> None:
    state = RandomState("r", 1, 2, 0)
    for value in (
        state.uniform(np.array(shape, np.int32), fb.float64),
        state.normal(np.array(shape, np.int32), fb.float32),
        state.integers(np.array(shape, np.int32), -3, 4, fb.int64),
    ):
        assert value.shape == tuple(shape)


def test_threads_draw_disjoint_numbers() -> None:
    state, found = RandomState("r", 1, 2, 0), []

    def take() -> None:
        for _ in range(50):
            found.append(draw(state, [4]).tobytes())

    run_together(*[take] * 8)
    whole = draw(RandomState("r", 1, 2, 0), [4 * 400]).reshape(400, 4)
    assert set(found) == {row.tobytes() for row in whole}
