"""Summaries of runs: which runs give them, and where they go."""
