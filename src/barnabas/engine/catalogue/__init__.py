"""The catalogue of applications and their running queries, kept beside the data."""
