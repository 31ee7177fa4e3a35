"""Operators of arithmetic, reductions, matrices, signals and random numbers."""
