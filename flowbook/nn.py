"""Building blocks of neural networks: activations, losses, embeddings, recurrence, attention."""

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
from flowbook.graph.ops.attention import multi_head_attention, scaled_dot_product_attention
from flowbook.graph.ops.ctc import ctc_loss
from flowbook.graph.ops.ctc_decoding import ctc_beam_search_decoder, ctc_greedy_decoder
from flowbook.graph.ops.embedding import embedding_lookup, embedding_lookup_sparse
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
from flowbook.graph.ops.recurrent import gru_cell, lstm_cell, rnn_cell, static_rnn
from flowbook.graph.ops.regularization import dropout, moments
from flowbook.graph.ops.sampled_losses import nce_loss, sampled_softmax_loss
from flowbook.graph.ops.sampling import (
    all_candidate_sampler,
    compute_accidental_hits,
    fixed_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from flowbook.graph.ops.selecting import nth_element, top_k

__all__ = [
    "all_candidate_sampler",
    "bias_add",
    "compute_accidental_hits",
    "crelu",
    "ctc_beam_search_decoder",
    "ctc_greedy_decoder",
    "ctc_loss",
    "dropout",
    "elu",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "fixed_unigram_candidate_sampler",
    "gelu",
    "gru_cell",
    "in_top_k",
    "l2_loss",
    "leaky_relu",
    "log_poisson_loss",
    "log_softmax",
    "log_uniform_candidate_sampler",
    "lstm_cell",
    "moments",
    "multi_head_attention",
    "nce_loss",
    "nth_element",
    "relu",
    "relu6",
    "rnn_cell",
    "sampled_softmax_loss",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "static_rnn",
    "swish",
    "top_k",
    "uniform_candidate_sampler",
    "weighted_cross_entropy_with_logits",
]
