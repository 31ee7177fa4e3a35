"""A step of several parts, which run at once, each on its device."""
