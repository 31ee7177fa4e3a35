"""Graph convolution: who belongs together is told from who knows whom, and from one of each group.

A layer gives each node a mean of what its neighbours are, times a matrix. Here people know others
of their own group more often than those of other groups; of one of each group it is known which it
is, and the network finds the group of all others.

`python -m examples.graph_convolution` trains it. The figure that shows what it has learnt is the
share of the others whose group it finds.

Source: Kipf and Welling, "Semi-supervised classification with graph convolutional networks", 2017.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import flowbook as fb
from examples import figures


def acquaintances(
    groups: Any, rng: np.random.Generator, within: float = 0.3, between: float = 0.02
) -> Any:
    """Who knows whom, [people, people], by chances within a group and between two."""
    chances = np.where(groups[:, None] == groups, within, between)
    is_known = np.triu(rng.random(chances.shape) < chances, 1)
    return is_known | is_known.T


def propagation(is_known: Any) -> Any:
    """What each node takes of each other (section 2 there): a sparse matrix [nodes, nodes]."""
    known = is_known + np.eye(len(is_known))
    roots = np.sqrt(known.sum(0))
    return fb.sparse.from_dense((known / roots / roots[:, None]).astype(np.float32))


def graph_convolution(propagated: Any, x: Any, units: int, activation: Any = None) -> Any:
    """A layer: of nodes [nodes, width] those of the next, [nodes, units]."""
    mixed = fb.sparse.sparse_dense_matmul(propagated, x)
    return fb.layers.dense(mixed, units, activation, name="graph_convolution")


def draw(figure: Any, is_known: Any, of: Any, found: Any) -> None:
    """Draw who knows whom, each group by itself, in the colours of the groups that were found."""
    at = np.exp(2j * np.pi * of / (of.max() + 1))
    at = at + 0.45 * np.exp(2j * np.pi * np.arange(len(of)) / len(of))
    with figures.axes(figure, size=(4, 4)) as drawn:
        # One line for all: a NaN interrupts it.
        ends = np.pad(at[np.argwhere(np.triu(is_known))], [(0, 0), (0, 1)], constant_values=np.nan)
        drawn.plot(ends.real.ravel(), ends.imag.ravel(), color="#8884", linewidth=0.5)
        colours = [figures.COLOURS[group] for group in found]
        drawn.scatter(at.real, at.imag, c=colours, zorder=2)
        drawn.axis("off")


def main(
    steps: int = 100, people: int = 120, groups: int = 4, seed: int = 1, figure: Any = None
) -> float:
    """Train; return the share of the others whose group is found."""
    fb.set_random_seed(seed)
    of = np.arange(people) % groups
    is_known = acquaintances(of, np.random.default_rng(seed))
    propagated = propagation(is_known)

    # Nobody has features but oneself.
    hidden = graph_convolution(propagated, fb.eye(people), 16, fb.tanh)
    scores = graph_convolution(propagated, hidden, groups)
    loss = fb.losses.sparse_softmax_cross_entropy(of[:groups], scores[:groups])
    step = fb.train.AdamOptimizer(0.02).minimize(loss)
    found = fb.equal(fb.argmax(scores[groups:], 1), of[groups:])
    share = fb.reduce_mean(fb.cast(found, fb.float32))
    with fb.Session() as sess:
        for _ in range(steps):
            sess.run(step)
        right, found_of = sess.run([share, fb.argmax(scores, 1)])
    draw(figure, is_known, of, found_of)
    print(f"{right:.0%} are in the right group; by chance {1 / groups:.0%} would be")
    return float(right)


if __name__ == "__main__":
    figures.run(main)
