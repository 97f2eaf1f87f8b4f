"""The tool `streams`: topologies on Spark."""
