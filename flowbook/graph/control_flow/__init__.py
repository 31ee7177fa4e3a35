"""Branches and loops: operations that route values, and what people write (white paper, 4.4)."""
