"""What a run is asked for: feeds and fetches."""
