"""The type of the tables for writing: what the rule of an operation type takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# A rule takes the writer, the operation and the names of its inputs' values, adds nodes, and gives
# the name of the output's value, or a list of names.
Rule = Callable[..., Any]
Rules = dict[str, Rule]
