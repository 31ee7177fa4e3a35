"""Text: joining, splitting, parts, patterns, and conversion from and to numbers."""

from flowbook.graph.ops.outside.printing import format as format
from flowbook.graph.ops.text.string_numbers import *
from flowbook.graph.ops.text.string_patterns import *
from flowbook.graph.ops.text.strings import *
