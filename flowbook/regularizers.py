"""Penalties on weights: functions from weights to a scalar that is added to the loss."""

from flowbook.train.layers.regularizers import *
