"""Share groups without I/O: the state that the share coordinator keeps, and the rules for it."""
