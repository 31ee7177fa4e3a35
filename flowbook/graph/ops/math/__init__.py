"""Functions of numbers, elementwise."""
