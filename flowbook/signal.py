"""Signals: frames, windows, and transforms frame by frame. Names are those of TensorFlow 1.

Transforms of whole signals are `fb.fft` and its like.
"""

from flowbook.graph.ops.signal.framing import *
from flowbook.graph.ops.signal.mel import *
from flowbook.graph.ops.signal.shifting import *
from flowbook.graph.ops.signal.short_time import *
from flowbook.graph.ops.signal.window_functions import *
