"""Kernels of ours for GPUs: what CuPy has not, or not as the CPU does it."""
