"""From a signature to a plan: the passes, and the plan as plain data."""
