"""Rows of `flowbook/graph/ops/basis`."""
