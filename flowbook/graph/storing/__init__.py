"""Graphs as bytes and files."""
