"""The tool `engine`: applications on Spark and their running queries."""
