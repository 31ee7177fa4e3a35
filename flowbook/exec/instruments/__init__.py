"""What watches runs: guards, summaries, the last feeds."""
