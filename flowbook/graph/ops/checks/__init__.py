"""What fails a step whose values are not as they should be."""
