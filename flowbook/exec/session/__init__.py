"""What a person holds to run a graph."""
