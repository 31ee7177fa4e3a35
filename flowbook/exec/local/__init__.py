"""What the master of this process is made of."""
