"""Tensors as arrays: made, shaped, joined, indexed, ordered."""
