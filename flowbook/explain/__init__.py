"""Tools that explain a model: its parameters, its likely mistakes, its costs, its rounding."""
