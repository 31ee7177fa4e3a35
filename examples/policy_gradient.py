"""The policy gradient: pushes are drawn, and those that paid are made likelier.

An episode of many carts is a loop of the graph, and one run both rolls it and learns from it.

`python -m examples.policy_gradient` trains it to balance the pole of `cart_pole.py`.

Source: Williams, "Simple statistical gradient-following algorithms for connectionist reinforcement
learning", 1992.
"""

from __future__ import annotations

from typing import Any

import flowbook as fb
from examples import figures
from examples.cart_pole import LONGEST, episode, moments_up, network


def training_step(
    policy: Any, count: int = 32, longest: int = LONGEST, rate: float = 0.02
) -> tuple[Any, Any]:
    """A step of learning from an episode, and how long the poles stayed up in it."""
    carts, pushes, up = episode(lambda c: fb.random_categorical(policy(c), 1)[:, 0], count, longest)
    # What a push is worth is how long the pole stays up after it.
    returns = fb.cumsum(up, reverse=True)
    usual = fb.reduce_mean(returns, 1, keepdims=True)
    surprise = fb.nn.sparse_softmax_cross_entropy_with_logits(
        labels=fb.stop_gradient(pushes), logits=policy(fb.stop_gradient(carts))
    )
    worth = fb.stop_gradient((returns - usual) / longest * up)
    loss = fb.reduce_mean(surprise * worth)
    return fb.train.AdamOptimizer(rate).minimize(loss), moments_up(up)


def main(
    steps: int = 40, longest: int = LONGEST, seed: int = 1, figure: Any = None
) -> tuple[float, float]:
    """Train; return how many moments poles stay up before and afterwards."""
    fb.set_random_seed(seed)
    step, lasted = training_step(network("policy"), longest=longest)
    with fb.Session() as sess:
        moments = [float(sess.run([lasted, step])[0]) for _ in range(steps)]
    figures.curves(figure, "moments that poles stay up", steps, {"learning": moments}, by_chance=22)
    print(f"poles stay up for {moments[0]:.0f} moments before, {moments[-1]:.0f} afterwards")
    return moments[0], moments[-1]


if __name__ == "__main__":
    figures.run(main)
