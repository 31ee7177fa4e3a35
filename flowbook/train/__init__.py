"""Training: optimizers, moving averages, schedules and checkpoints, on the public operations."""

from flowbook.exec.checkpoints.checkpoint import *
from flowbook.exec.checkpoints.saver import *
from flowbook.exec.session.starting_runners import *
from flowbook.graph.model.mark import *
from flowbook.graph.ops.outside.saved_tensors import *
from flowbook.graph.ops.queues.queue_runners import *
from flowbook.train.adafactor import *
from flowbook.train.adagrad import *
from flowbook.train.adam import *
from flowbook.train.coordinator import *
from flowbook.train.ftrl import *
from flowbook.train.gradient_descent import *
from flowbook.train.input.batches import *
from flowbook.train.input.batching import *
from flowbook.train.input.bucketing import *
from flowbook.train.input.generators import *
from flowbook.train.input.producers import *
from flowbook.train.input.record_batches import *
from flowbook.train.input.records import *
from flowbook.train.input.until_end import *
from flowbook.train.lbfgs import *
from flowbook.train.moving_averages import *
from flowbook.train.optimizer import *
from flowbook.train.rmsprop import *
from flowbook.train.schedules import *
from flowbook.train.step_counter import *
