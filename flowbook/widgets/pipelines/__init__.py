"""The live view of what a session's queues do."""
