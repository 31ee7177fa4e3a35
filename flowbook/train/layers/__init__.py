"""Layers: plain functions that make named variables in a scope of their own and apply them."""
