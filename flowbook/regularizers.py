"""Penalties on weights: functions from weights to a scalar that is added to the loss."""

from flowbook._renamed import no_such_name_in
from flowbook.train.layers.regularizers import l1, l1_l2, l2

__all__ = ["l1", "l1_l2", "l2"]

__getattr__ = no_such_name_in(__name__)
