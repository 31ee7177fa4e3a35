"""A pole on a cart that is pushed left or right: the world as operations, many carts at once.

`policy_gradient.py` and `q_learning.py` learn to balance it. The figure that shows what they have
learnt is how long the pole stays up, of at most 200 moments; with pushes by chance it is some 22.

Source: Barto, Sutton, Anderson, "Neuronlike adaptive elements that can solve difficult learning
control problems", 1983, with the constants of OpenAI's Gym.
"""

from __future__ import annotations

from typing import Any

import flowbook as fb

LONGEST = 200


def begin(count: int) -> Any:
    """Carts [count, 4]: place, speed, the pole's angle and its speed."""
    return fb.random_uniform([count, 4], -0.05, 0.05)


def roll(carts: Any, pushes: Any) -> Any:
    """What the carts are 0.02 s after pushes [count], 0 to the left and 1 to the right."""
    _, speed, angle, turn = fb.unstack(carts, axis=1)
    force = 20.0 * fb.cast(pushes, fb.float32) - 10.0
    pull = (force + 0.05 * fb.square(turn) * fb.sin(angle)) / 1.1
    lean = 9.8 * fb.sin(angle) - fb.cos(angle) * pull
    angular = lean / (0.5 * (4 / 3 - 0.1 * fb.square(fb.cos(angle)) / 1.1))
    linear = pull - 0.05 * angular * fb.cos(angle) / 1.1
    return carts + 0.02 * fb.stack([speed, linear, turn, angular], axis=1)


def is_up(carts: Any) -> Any:
    """Whether each is still on the track, with its pole within 12 degrees."""
    return (fb.abs(carts[:, 0]) < 2.4) & (fb.abs(carts[:, 2]) < 0.2095)


def network(name: str, units: int = 32) -> fb.Template:
    """What gives scores [..., 2], one for each push, of carts [..., 4]; its calls share weights."""

    def scores(carts: Any) -> Any:
        # As large as they become before the pole falls, all are about 1.
        hidden = fb.layers.dense(carts / [2.4, 2.0, 0.2, 2.0], units, fb.tanh)
        start = fb.initializers.zeros()
        return fb.layers.dense(hidden, 2, use_bias=False, kernel_initializer=start)

    return fb.template(scores, name)


def moments_up(up: Any) -> Any:
    """How long the poles stayed up on average, of what `episode` tells."""
    return fb.reduce_mean(fb.reduce_sum(up, 0))


def episode(choose: Any, count: int, longest: int = LONGEST) -> tuple[Any, Any, Any]:
    """Roll carts: they, the pushes, and whether each was up all the time, by moment.

    Args:
        choose: of carts [count, 4] the pushes [count], int64.
        count: how many carts there are.
        longest: how many moments it lasts.
    """

    def moment(last: Any, _: Any) -> Any:
        carts, _, was_up = last
        pushes = choose(carts)
        carts = roll(carts, pushes)
        return carts, pushes, was_up & is_up(carts)

    carts = begin(count)
    start = (carts, fb.zeros([count], fb.int64), fb.fill([count], True))
    after, pushes, up = fb.scan(moment, fb.range(longest), start)
    before = fb.concat([carts[None], after[:-1]], 0)
    return before, pushes, fb.cast(up, fb.float32)
