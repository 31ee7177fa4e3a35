"""The master of this process, and what it is made of."""
