"""Rows of `flowbook/graph/ops/math`."""
