"""Declarations of settings: one module for each area, one row for each setting."""
