"""What stateful kernels hold between steps: one module per kind of resource."""
