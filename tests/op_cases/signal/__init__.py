"""Rows of `flowbook/graph/ops/signal`."""
