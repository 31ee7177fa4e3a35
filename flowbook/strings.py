"""Text: joining, splitting, parts, patterns, and conversion from and to numbers."""

from flowbook._renamed import no_such_name_in
from flowbook.graph.ops.outside.printing import string_format as format
from flowbook.graph.ops.text.string_numbers import (
    as_string,
    to_hash_bucket_fast,
    to_hash_bucket_strong,
    to_number,
)
from flowbook.graph.ops.text.string_patterns import regex_full_match, regex_replace, split
from flowbook.graph.ops.text.strings import join, length, reduce_join, substr
from flowbook.graph.ops.text.strings import lower_op as lower
from flowbook.graph.ops.text.strings import strip_op as strip
from flowbook.graph.ops.text.strings import upper_op as upper

__all__ = [
    "as_string",
    "format",
    "join",
    "length",
    "lower",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "upper",
]

__getattr__ = no_such_name_in(__name__)
