"""Tools for topics and partitions: create, describe, move, elect, verify, delete records."""
