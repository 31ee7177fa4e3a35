"""The picture of a graph: blocks, layers and edges, as SVG and as the live view draws them."""
