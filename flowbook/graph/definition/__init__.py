"""What an operation type is, and what definitions share."""
