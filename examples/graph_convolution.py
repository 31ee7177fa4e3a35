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


def main(steps: int = 100, people: int = 120, groups: int = 4, seed: int = 1) -> float:
    """Train; return the share of the others whose group is found."""
    fb.set_random_seed(seed)
    of = np.arange(people) % groups
    propagated = propagation(acquaintances(of, np.random.default_rng(seed)))

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
        right = float(sess.run(share))
    print(f"{right:.0%} are in the right group; by chance {1 / groups:.0%} would be")
    return right


if __name__ == "__main__":
    main()
