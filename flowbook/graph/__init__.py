"""WHAT is computed: operations, tensors, graphs, gradients. No threads, devices, files, network."""
