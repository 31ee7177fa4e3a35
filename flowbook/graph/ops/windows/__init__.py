"""Windows that move over axes: convolutions, pools, morphology."""
