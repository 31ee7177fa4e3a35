"""Rows of `flowbook/graph/ops/text`."""
