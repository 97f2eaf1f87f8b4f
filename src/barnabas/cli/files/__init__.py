"""Tools that read a broker's files: dump-log and the metadata shell."""
