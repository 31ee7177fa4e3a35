"""Rows of `flowbook/graph/ops/random`."""
