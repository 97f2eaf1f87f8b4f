"""Tables of Delta: commits that happen once, fences against former writers, versions without Spark."""
