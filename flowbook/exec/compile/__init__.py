"""From a pruned graph to something that runs fast."""
