"""Medians and spreads of samples, and ratios of samples taken in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.stats import bootstrap


@dataclass(frozen=True)
class Interval:
    """A median, and between which bounds it lies with 95 % confidence."""

    median: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        """As a JSON object."""
        return asdict(self)


@dataclass(frozen=True)
class Summary:
    """A distribution of samples: its median, its quartiles, its ends."""

    median: float
    first_quartile: float
    third_quartile: float
    least: float
    greatest: float
    samples: int

    def to_json(self) -> dict[str, float]:
        """As a JSON object."""
        return asdict(self)


def summarize(samples: Sequence[float]) -> Summary:
    """Summarize samples, of which there is at least one.

    >>> summarize([3.0, 1.0, 2.0]).median
    2.0
    """
    least, first, median, third, greatest = np.quantile(samples, [0, 0.25, 0.5, 0.75, 1]).tolist()
    return Summary(median, first, third, least, greatest, len(samples))


def paired_ratio(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> Summary:
    """The ratio of two systems' times, taken round by round.

    A round's samples lie within a second of each other, so a machine that is slower for a while
    slows both and leaves their ratio alone.
    """
    return summarize(
        [float(np.median(our) / np.median(their)) for our, their in zip(ours, theirs, strict=True)]
    )


def share_above(ours: Sequence[Sequence[float]], beside: Sequence[Sequence[float]]) -> Interval:
    """By which share of it our times exceed those of their pairs.

    The interval is a bootstrap over rounds, not pairs: those of one round have its state of the
    machine in common.

    >>> share_above([[1.5, 1.5], [1.25, 1.25]], [[1.0, 1.0], [1.0, 1.0]])
    Interval(median=0.375, low=0.25, high=0.5)
    """
    shares = [
        float(np.median(np.subtract(our, plain)) / np.median(plain))
        for our, plain in zip(ours, beside, strict=True)
    ]
    found = bootstrap((shares,), np.median, method="percentile", rng=0).confidence_interval
    return Interval(float(np.median(shares)), float(found.low), float(found.high))
