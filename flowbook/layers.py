"""Layers: plain functions that make named variables in a scope and apply them.

A layer makes new variables each time it is called; to share them, pass them on.
"""

from flowbook.train.layers.convolutional import *
from flowbook.train.layers.core import *
from flowbook.train.layers.normalisation import *
from flowbook.train.layers.recurrent import *
from flowbook.train.layers.recurrent_cells import *
from flowbook.train.layers.regularizers import regularization_loss as regularization_loss
