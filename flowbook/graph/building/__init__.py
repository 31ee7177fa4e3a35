"""Graphs, and what surrounds the code that builds in them."""
