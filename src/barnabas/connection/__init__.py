"""Incoming bytes of a connection, without its socket: the memory they are read into, and splitting into
frames."""
