"""Rows of `flowbook/graph/ops/linalg`."""
