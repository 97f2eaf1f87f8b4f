"""The pipeline's file: read, checked, written, compared with the file of the last run."""
