"""Summaries on their way from a run to charts and logs."""
