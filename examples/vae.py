"""A variational autoencoder of digits: a code of a few numbers for an image, and back.

`python -m examples.vae` trains it. The figure that shows what it has learnt is the bound on the
likelihood of digits that it has never seen, in nats for an image.

Source: Kingma and Welling, "Auto-encoding variational Bayes", 2013.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import flowbook as fb
from examples import figures

PIXELS = 64


class Autoencoder(NamedTuple):
    """What the model computes.

    Attributes:
        codes: [batch, width], drawn from what the encoder says of the images.
        logits: [batch, 64], of the pixels that the decoder makes of the codes.
        bound: of the logarithm of the images' likelihood, from below, on average.
    """

    codes: Any
    logits: Any
    bound: Any


def autoencoder(images: Any, width: int = 8, units: int = 128) -> Autoencoder:
    """Build the model, of images [batch, 64] whose pixels are from 0 to 1."""
    with fb.name_scope("encoder"):
        hidden = fb.layers.dense(images, units, fb.nn.relu)
        mean = fb.layers.dense(hidden, width)
        log_variance = fb.layers.dense(hidden, width)
        codes = mean + fb.exp(log_variance / 2) * fb.random_normal(fb.shape(mean))
    with fb.name_scope("decoder"):
        hidden = fb.layers.dense(codes, units, fb.nn.relu)
        logits = fb.layers.dense(hidden, PIXELS)
    surprise = fb.nn.sigmoid_cross_entropy_with_logits(labels=images, logits=logits)
    # From the code's distribution to the standard normal one (appendix B there).
    divergence = (fb.exp(log_variance) + fb.square(mean) - 1 - log_variance) / 2
    loss = fb.reduce_sum(surprise, 1) + fb.reduce_sum(divergence, 1)
    return Autoencoder(codes, logits, -fb.reduce_mean(loss))


def likelihood_of_independent_pixels(training: Any, held_out: Any) -> float:
    """What a model says that knows of each pixel only how dark it is on average, in nats."""
    dark = np.clip(training.mean(0), 1e-3, 1 - 1e-3)
    return float(np.mean(np.sum(held_out * np.log(dark) + (1 - held_out) * np.log(1 - dark), 1)))


def _dark(logits: Any) -> Any:
    return 1 / (1 + np.exp(-logits))


def main(
    steps: int = 3000, batch: int = 64, seed: int = 1, figure: Any = None
) -> tuple[float, float]:
    """Train; return the bound for held-out digits, and what independent pixels would give."""
    fb.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    digits = rng.permutation(load_digits().data.astype(np.float32) / 16)
    held_out, training = digits[:200], digits[200:]

    images = fb.placeholder(fb.float32, [None, PIXELS], name="images")
    model = autoencoder(images)
    step = fb.train.AdamOptimizer(2e-3).minimize(-model.bound)
    with fb.Session() as sess:
        for _ in range(steps):
            sess.run(step, {images: rng.choice(training, batch)})
        bound, logits = sess.run([model.bound, model.logits], {images: held_out})
        invented = sess.run(model.logits, {model.codes: rng.normal(size=[16, 8])})
    shown = {"never seen": held_out, "by their codes": _dark(logits), "invented": _dark(invented)}
    figures.rows(figure, {name: x[:16].reshape(-1, 8, 8) for name, x in shown.items()})
    simple = likelihood_of_independent_pixels(training, held_out)
    print(f"{bound:.2f} nats an image; with independent pixels {simple:.2f}")
    return float(bound), simple


if __name__ == "__main__":
    figures.run(main)
