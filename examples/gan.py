"""A generative adversarial network that draws digits.

A generator makes images of noise; a discriminator learns to tell them from digits that people have
written, and the generator to deceive it.

`python -m examples.gan` trains it. The figure that shows what it has learnt is the energy distance
between images that it draws and digits that it has never seen: 0 only if both are distributed
alike.

Source: Goodfellow et al., "Generative adversarial nets", 2014, with its non-saturating loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import flowbook as fb
from examples import figures

NOISE = 16
PIXELS = 64


def generator(noise: Any, units: int = 128) -> Any:
    """Images [batch, 64], from 0 to 1, of noise [batch, 16]."""
    with fb.name_scope("generator"):
        hidden = fb.layers.dense(noise, units, fb.nn.relu)
        hidden = fb.layers.dense(hidden, units, fb.nn.relu)
        return fb.layers.dense(hidden, PIXELS, fb.sigmoid)


def discriminator(images: Any, units: int = 128) -> Any:
    """How sure it is that each image was written by a person: logits [batch, 1]."""
    with fb.name_scope("discriminator"):
        hidden = fb.layers.dense(images, units, fb.nn.leaky_relu)
        hidden = fb.layers.dense(hidden, units, fb.nn.leaky_relu)
        return fb.layers.dense(hidden, 1)


def training_step(written: Any, drawn: Any, rate: float = 2e-3) -> Any:
    """A step of both, each by its own variables."""
    # One pass sees both kinds, so there is one discriminator.
    judged = discriminator(fb.concat([written, drawn], 0))
    of_written, of_drawn = fb.split(judged, 2)
    losses = {
        "discriminator": fb.reduce_mean(fb.nn.softplus(-of_written) + fb.nn.softplus(of_drawn)),
        "generator": fb.reduce_mean(fb.nn.softplus(-of_drawn)),
    }
    # What each should do changes with the other: momentum would carry it on.
    return [
        fb.train.AdamOptimizer(rate, beta1=0.0).minimize(
            loss, var_list=written.graph.variables(trainable=True, scope=player), name=player
        )
        for player, loss in losses.items()
    ]


def energy_distance(some: Any, others: Any) -> Any:
    """How differently two samples [count, width] are distributed (Székely and Rizzo, 2013)."""

    def apart(a: Any, b: Any) -> Any:
        return fb.reduce_mean(fb.norm(a[:, None] - b, axis=-1))

    return 2 * apart(some, others) - apart(some, some) - apart(others, others)


def main(
    steps: int = 3000, batch: int = 64, seed: int = 1, figure: Any = None
) -> tuple[float, float]:
    """Train; return the distance to held-out digits before and afterwards."""
    fb.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    digits = rng.permutation(load_digits().data.astype(np.float32) / 16)
    held_out, training = digits[:200], digits[200:]

    written = fb.placeholder(fb.float32, [batch, PIXELS], name="written")
    count = fb.placeholder_with_default(batch, [], name="count")
    drawn = generator(fb.random_normal(fb.stack([count, NOISE])))
    step = training_step(written, drawn)
    distance = energy_distance(drawn, held_out)

    with fb.Session() as sess:
        before, noise = sess.run([distance, drawn], {count: 200})
        for _ in range(steps):
            sess.run(step, {written: rng.choice(training, batch)})
        after, learnt = sess.run([distance, drawn], {count: 200})
    shown = {"at first": noise, "learnt": learnt, "written by people": held_out}
    figures.rows(figure, {name: x[:16].reshape(-1, 8, 8) for name, x in shown.items()})
    print(f"energy distance {before:.3f} before, {after:.3f} after {steps} steps")
    return float(before), float(after)


if __name__ == "__main__":
    figures.run(main)
