"""Deep Q-learning: what each push will be worth is learnt from moments that are remembered.

A run takes one moment of each cart, puts it into the memory, a variable, and learns from moments
that it draws from there. A slow copy of the network says what the future is worth.

`python -m examples.q_learning` trains it to balance the pole of `cart_pole.py`.

Source: Mnih et al., "Human-level control through deep reinforcement learning", 2015.
"""

from __future__ import annotations

from typing import Any

import flowbook as fb
from examples import figures
from examples.cart_pole import begin, episode, is_up, moments_up, network, roll


class QLearning:
    """Learns what each push will be worth, from one moment of each cart in a step.

    Attributes:
        values: the network that tells what pushes are worth.
        step: what a step runs.

    Args:
        count: how many carts there are.
        kept: how many moments of each are remembered.
        chance: how often a push is any.
        discount: what a later moment counts against the one before.
        rate: of learning.
    """

    def __init__(
        self,
        count: int = 32,
        kept: int = 200,
        chance: float = 0.1,
        discount: float = 0.95,
        rate: float = 1e-2,
    ) -> None:
        self.values, slow = network("values"), network("slow")
        carts = fb.Variable(begin(count), trainable=False, name="carts")
        memory = fb.Variable(fb.zeros([kept, count, 10]), trainable=False, name="memory")
        moment = fb.Variable(0, trainable=False, name="moment")

        is_any = fb.random_uniform([count]) < chance
        any_push = fb.random_uniform([count], 0, 2, fb.int64)
        pushes = fb.where(is_any, any_push, fb.argmax(self.values(carts), 1))
        after = roll(carts, pushes)
        seen = [carts, after, *(fb.cast(x, fb.float32)[:, None] for x in (pushes, is_up(after)))]
        known = fb.assign_slice(memory, moment % kept, fb.concat(seen, 1))

        filled = fb.minimum(moment + 1, kept) * count
        rows = fb.random_uniform([128], 0, filled, fb.int32)
        drawn = fb.gather(fb.reshape(known, [-1, 10]), rows)
        before, then, push, up = fb.split(drawn, [4, 4, 1, 1], axis=1)
        future = fb.reduce_max(slow(then), 1) * up[:, 0]
        chosen = fb.one_hot(fb.cast(push[:, 0], fb.int32), 2)
        value = fb.reduce_sum(self.values(before) * chosen, 1)
        loss = fb.losses.huber_loss(fb.stop_gradient(1 - discount + discount * future), value)
        learn = fb.train.AdamOptimizer(rate).minimize(loss, var_list=self.values.variables())

        again = fb.where(is_up(after)[:, None], after, begin(count))
        with fb.control_dependencies([learn]):
            pairs = zip(slow.variables(), self.values.variables(), strict=True)
            follow = [fb.assign_add(old, 0.02 * (new - old)) for old, new in pairs]
            self.step = fb.group(*follow, fb.assign(carts, again), fb.assign_add(moment, 1))


def main(steps: int = 2000, seed: int = 1, figure: Any = None) -> tuple[float, float]:
    """Train; return how many moments poles stay up before and afterwards."""
    fb.set_random_seed(seed)
    learning = QLearning()
    _, _, up = episode(lambda carts: fb.argmax(learning.values(carts), 1), 32)
    lasted = moments_up(up)
    with fb.Session() as sess:
        moments = [float(sess.run(lasted))]
        for done in range(1, steps + 1):
            sess.run(learning.step)
            if done % 100 == 0:
                moments.append(float(sess.run(lasted)))
    figures.curves(figure, "moments that poles stay up", steps, {"learning": moments}, by_chance=22)
    print(f"poles stay up for {moments[0]:.0f} moments before, {moments[-1]:.0f} afterwards")
    return moments[0], moments[-1]


if __name__ == "__main__":
    figures.run(main)
