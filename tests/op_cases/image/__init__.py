"""Rows of `flowbook/graph/ops/image`."""
