"""Building blocks of neural networks: activations, losses, normalisation, dropout."""

from flowbook.graph.ops.activations import (
    bias_add,
    crelu,
    elu,
    leaky_relu,
    log_softmax,
    relu,
    relu6,
    selu,
    softmax,
    softplus,
    softsign,
)
from flowbook.graph.ops.gated_activations import gelu, swish
from flowbook.graph.ops.losses import (
    in_top_k,
    l2_loss,
    log_poisson_loss,
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
)
from flowbook.graph.ops.regularization import dropout, moments

__all__ = [
    "bias_add",
    "crelu",
    "dropout",
    "elu",
    "gelu",
    "in_top_k",
    "l2_loss",
    "leaky_relu",
    "log_poisson_loss",
    "log_softmax",
    "moments",
    "relu",
    "relu6",
    "selu",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "swish",
    "weighted_cross_entropy_with_logits",
]
