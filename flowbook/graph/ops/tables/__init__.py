"""Look-up tables: values by keys."""
