"""What stateful kernels hold between steps: one module per kind of resource."""

from flowbook.exec.resources import counter, mutex, queue, random_state, variable

__all__ = ["counter", "mutex", "queue", "random_state", "variable"]
