"""Rows of `flowbook/graph/ops/windows`."""
