"""Passes over the pruned graph: from a `Subgraph` to a `Subgraph`, none changes an operation."""
