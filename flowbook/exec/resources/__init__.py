"""What stateful kernels hold between steps: one module per kind of resource."""

from flowbook.exec.resources import counter, queue, random_state, variable

__all__ = ["counter", "queue", "random_state", "variable"]
