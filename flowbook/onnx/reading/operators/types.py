"""The type of the tables: what an operator's translation takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# A translation takes the node and its inputs, None for those that are absent, and gives the
# output, or a sequence of outputs with None for those that nobody wants.
Translation = Callable[..., Any]
Table = dict[str, Translation]
