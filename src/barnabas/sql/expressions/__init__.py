"""Expressions with types: names, operators, casts and functions become trees of a plan."""
