"""Devices: what runs kernels and owns memory."""
