"""Many elements into few: reductions, segments, counts; and scans."""
