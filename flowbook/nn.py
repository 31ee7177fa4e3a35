"""Building blocks of neural networks: activations, losses, embeddings, recurrence, attention."""

from flowbook._renamed import no_such_name_in
from flowbook.graph.ops.arrays.selecting import nth_element, top_k
from flowbook.graph.ops.nn.activations import (
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
from flowbook.graph.ops.nn.attention import multi_head_attention, scaled_dot_product_attention
from flowbook.graph.ops.nn.candidate_sampling import (
    all_candidate_sampler,
    compute_accidental_hits,
    fixed_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from flowbook.graph.ops.nn.ctc import ctc_loss
from flowbook.graph.ops.nn.ctc_decoding import ctc_beam_search_decoder, ctc_greedy_decoder
from flowbook.graph.ops.nn.ctc_labels import collapse_repeated
from flowbook.graph.ops.nn.embedding import (
    embedding_lookup,
    embedding_lookup_sparse,
    safe_embedding_lookup_sparse,
)
from flowbook.graph.ops.nn.gated_activations import gelu, swish
from flowbook.graph.ops.nn.losses import (
    in_top_k,
    l2_loss,
    log_poisson_loss,
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
)
from flowbook.graph.ops.nn.normalisation import (
    batch_normalization,
    fused_batch_norm,
    group_normalization,
    l2_normalize,
    layer_normalization,
    local_response_normalization,
    moments,
    normalize_moments,
    sufficient_statistics,
    weighted_moments,
    zero_fraction,
)
from flowbook.graph.ops.nn.recurrent import gru_cell, lstm_cell, rnn_cell, static_rnn
from flowbook.graph.ops.nn.regularization import dropout
from flowbook.graph.ops.nn.sampled_losses import nce_loss, sampled_softmax_loss
from flowbook.graph.ops.windows.convolution import (
    atrous_conv2d,
    atrous_conv2d_transpose,
    conv1d,
    conv1d_transpose,
    conv2d,
    conv2d_backprop_filter,
    conv2d_backprop_input,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    convolution,
)
from flowbook.graph.ops.windows.depthwise import depthwise_conv2d, separable_conv2d
from flowbook.graph.ops.windows.fractional_pooling import (
    FractionalPool,
    fractional_avg_pool,
    fractional_max_pool,
)
from flowbook.graph.ops.windows.morphology import dilation2d, erosion2d
from flowbook.graph.ops.windows.pooling import (
    avg_pool,
    avg_pool1d,
    avg_pool3d,
    max_pool,
    max_pool1d,
    max_pool3d,
    max_pool_with_argmax,
    pool,
)

__all__ = [
    "FractionalPool",
    "all_candidate_sampler",
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "avg_pool",
    "avg_pool1d",
    "avg_pool3d",
    "batch_normalization",
    "bias_add",
    "collapse_repeated",
    "compute_accidental_hits",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "convolution",
    "crelu",
    "ctc_beam_search_decoder",
    "ctc_greedy_decoder",
    "ctc_loss",
    "depthwise_conv2d",
    "dilation2d",
    "dropout",
    "elu",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "erosion2d",
    "fixed_unigram_candidate_sampler",
    "fractional_avg_pool",
    "fractional_max_pool",
    "fused_batch_norm",
    "gelu",
    "group_normalization",
    "gru_cell",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "layer_normalization",
    "leaky_relu",
    "local_response_normalization",
    "log_poisson_loss",
    "log_softmax",
    "log_uniform_candidate_sampler",
    "lstm_cell",
    "max_pool",
    "max_pool1d",
    "max_pool3d",
    "max_pool_with_argmax",
    "moments",
    "multi_head_attention",
    "nce_loss",
    "normalize_moments",
    "nth_element",
    "pool",
    "relu",
    "relu6",
    "rnn_cell",
    "safe_embedding_lookup_sparse",
    "sampled_softmax_loss",
    "scaled_dot_product_attention",
    "selu",
    "separable_conv2d",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "static_rnn",
    "sufficient_statistics",
    "swish",
    "top_k",
    "uniform_candidate_sampler",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "zero_fraction",
]

__getattr__ = no_such_name_in(__name__)
