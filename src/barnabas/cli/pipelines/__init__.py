"""Tools for pipelines: everything that is done with a pipeline's file."""
