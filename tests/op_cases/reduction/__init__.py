"""Rows of `flowbook/graph/ops/reduction`."""
