"""What becomes of a graph when the cells of a notebook run again."""
