"""Where operations are from: the line, the variable that it gives, and the notebook cell."""
