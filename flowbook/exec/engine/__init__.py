"""How a plan runs in this process."""
