"""The command topic: statements in one order, carried out by every node."""
