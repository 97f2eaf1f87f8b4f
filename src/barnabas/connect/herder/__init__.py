"""Workers: what connectors and tasks there are, which of them run here, and what became of them."""
