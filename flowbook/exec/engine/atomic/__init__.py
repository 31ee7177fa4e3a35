"""What a step does as a whole or not at all: what others can tell of, and what it gives back."""
