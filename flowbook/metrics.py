"""Metrics: what a model's predictions are worth, counted over many runs."""

from flowbook.train.metrics import *
