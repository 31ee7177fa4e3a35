"""Operators that arrange, pick and convert elements."""
