"""Variables, and marks on what changes them."""
