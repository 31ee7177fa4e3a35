"""Rows of `flowbook/graph/ops/queues`."""
