"""Summaries: what is shown of a training over its steps; `Session.summarize` says when."""

from flowbook._renamed import no_such_name_in
from flowbook.exec.instruments.summaries.event import Histogram, Image, Summary
from flowbook.exec.instruments.summaries.follow import follow
from flowbook.exec.instruments.summaries.history import SummaryHistory
from flowbook.exec.instruments.summaries.log import LogDirectory
from flowbook.graph.ops.outside.summary import histogram, image, scalar, text

__all__ = [
    "Histogram",
    "Image",
    "LogDirectory",
    "Summary",
    "SummaryHistory",
    "follow",
    "histogram",
    "image",
    "scalar",
    "text",
]

__getattr__ = no_such_name_in(__name__)
