"""Layers: plain functions that make named variables in a scope and apply them.

A layer makes new variables each time it is called; to share them, pass them on.
"""

from flowbook._renamed import no_such_name_in
from flowbook.train.layers.convolutional import (
    average_pooling1d,
    average_pooling2d,
    average_pooling3d,
    conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    max_pooling1d,
    max_pooling2d,
    max_pooling3d,
    separable_conv2d,
)
from flowbook.train.layers.core import dense, dropout, embedding, flatten
from flowbook.train.layers.normalisation import batch_normalization, layer_normalization
from flowbook.train.layers.recurrent import gru, lstm
from flowbook.train.layers.regularizers import regularization_loss

__all__ = [
    "average_pooling1d",
    "average_pooling2d",
    "average_pooling3d",
    "batch_normalization",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "dense",
    "dropout",
    "embedding",
    "flatten",
    "gru",
    "layer_normalization",
    "lstm",
    "max_pooling1d",
    "max_pooling2d",
    "max_pooling3d",
    "regularization_loss",
    "separable_conv2d",
]

__getattr__ = no_such_name_in(__name__)
