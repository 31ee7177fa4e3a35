"""Input: what gives a training its data, step after step."""
