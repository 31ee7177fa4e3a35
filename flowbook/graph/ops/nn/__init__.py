"""Neural networks: activations, losses, normalisation, cells."""
