"""Units that need no waiting as Python code."""
