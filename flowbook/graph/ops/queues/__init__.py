"""Queues, and what else operations wait at."""
