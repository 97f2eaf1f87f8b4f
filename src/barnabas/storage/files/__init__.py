"""Small files and names of a log dir, open descriptors, files that wait for their deletion."""
