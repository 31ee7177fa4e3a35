"""Rows of `flowbook/graph/ops/sparse`."""
