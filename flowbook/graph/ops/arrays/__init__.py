"""Tensors as arrays: gathered, scattered, masked, repeated, ordered."""
