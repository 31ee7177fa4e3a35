"""What stateful kernels hold between steps: one module per kind of resource."""

from flowbook.exec.resources import counter, random_state, variable

__all__ = ["counter", "random_state", "variable"]
