"""Rows of `flowbook/graph/ops/state`."""
