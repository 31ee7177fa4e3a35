"""Parts of graphs in other graphs."""
