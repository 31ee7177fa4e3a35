"""What variables start with: functions that make a tensor of a shape and dtype."""

from flowbook.train.layers.initializers import *
