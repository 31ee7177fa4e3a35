"""What graphs are made of: operations and tensors, their dtypes, shapes, sites and errors."""
