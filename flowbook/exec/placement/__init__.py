"""Which device each operation runs on, and what that is expected to take."""
