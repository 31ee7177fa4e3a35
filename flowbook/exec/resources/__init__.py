"""What stateful kernels hold between steps: one module per kind of resource."""

from flowbook.exec.resources import checkpoint_files, counter, random_state, variable

__all__ = ["checkpoint_files", "counter", "random_state", "variable"]
