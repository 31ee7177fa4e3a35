"""Plans of runs as they are shown: which device does what, and why."""
