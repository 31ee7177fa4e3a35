"""What reaches out of the graph: Python functions, printing, summaries."""
