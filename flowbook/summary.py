"""Summaries: what is shown of a training over its steps; `Session.summarize` says when."""

from flowbook.exec.instruments.summaries.event import *
from flowbook.exec.instruments.summaries.follow import *
from flowbook.exec.instruments.summaries.history import *
from flowbook.exec.instruments.summaries.log import *
from flowbook.graph.ops.outside.summary import *
