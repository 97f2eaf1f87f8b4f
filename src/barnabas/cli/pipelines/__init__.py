"""The tool for pipelines: all commands on a pipeline's file."""
