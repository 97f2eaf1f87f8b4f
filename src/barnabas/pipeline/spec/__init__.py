"""A pipeline as values, and what follows from them without Spark."""
