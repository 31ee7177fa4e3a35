"""State as files: what a session holds, stored whole or not at all, and read back."""
