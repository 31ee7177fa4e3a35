"""Traces as they are shown: what ran when, on which device and thread."""
