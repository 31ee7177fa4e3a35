"""Rows of `flowbook/graph/ops/outside`."""
