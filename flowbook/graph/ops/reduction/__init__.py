"""Many elements into few: reductions, scans, segments, counts."""
