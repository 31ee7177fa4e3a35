"""Building blocks of neural networks: activations, losses, embeddings, recurrence, attention."""

from flowbook.graph.control_flow.dynamic_rnn import *
from flowbook.graph.control_flow.raw_rnn import *
from flowbook.graph.control_flow.static_rnn import *
from flowbook.graph.ops.arrays.selecting import *
from flowbook.graph.ops.nn.activations import *
from flowbook.graph.ops.nn.attention import *
from flowbook.graph.ops.nn.candidate_sampling import *
from flowbook.graph.ops.nn.cells import *
from flowbook.graph.ops.nn.ctc import *
from flowbook.graph.ops.nn.ctc_decoding import *
from flowbook.graph.ops.nn.ctc_labels import *
from flowbook.graph.ops.nn.embedding import *
from flowbook.graph.ops.nn.gated_activations import *
from flowbook.graph.ops.nn.losses import *
from flowbook.graph.ops.nn.normalisation import *
from flowbook.graph.ops.nn.recurrent import *
from flowbook.graph.ops.nn.regularization import *
from flowbook.graph.ops.nn.sampled_losses import *
from flowbook.graph.ops.windows.convolution import *
from flowbook.graph.ops.windows.depthwise import *
from flowbook.graph.ops.windows.fractional_pooling import *
from flowbook.graph.ops.windows.morphology import *
from flowbook.graph.ops.windows.pooling import *
