"""What every family stands on: constants, shapes, sums, casts, parts."""
