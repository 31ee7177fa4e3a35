"""Rows of `flowbook/graph/ops/arrays`."""
