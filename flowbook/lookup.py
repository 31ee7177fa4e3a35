"""Look-up tables: values by keys, words by their numbers in a vocabulary, and back."""

from flowbook.graph.ops.tables.mutable_tables import *
from flowbook.graph.ops.tables.static_tables import *
