"""Strings of bytes."""
