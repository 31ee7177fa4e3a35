"""Losses: functions from labels and predictions to a scalar that training makes small."""

from flowbook.train.losses import *
