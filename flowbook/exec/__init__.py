"""How one process runs a graph."""
