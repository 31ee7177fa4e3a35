"""Building blocks of neural networks: activations, losses, normalisation, dropout."""

from flowbook.graph.ops.activations import (
    bias_add,
    elu,
    leaky_relu,
    log_softmax,
    relu,
    relu6,
    softmax,
    softplus,
)
from flowbook.graph.ops.losses import (
    in_top_k,
    l2_loss,
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from flowbook.graph.ops.regularization import dropout, moments
from flowbook.graph.ops.selecting import nth_element, top_k

__all__ = [
    "bias_add",
    "dropout",
    "elu",
    "in_top_k",
    "l2_loss",
    "leaky_relu",
    "log_softmax",
    "moments",
    "nth_element",
    "relu",
    "relu6",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "sparse_softmax_cross_entropy_with_logits",
    "top_k",
]
