"""Rows of `flowbook/graph/ops/nn`."""
