"""Small files and file names of a log dir, open descriptors, and deleted files that are not removed yet."""
