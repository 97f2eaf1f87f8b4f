"""State of a task: typed stores over pages of bytes; a page is read once and written once in a batch."""
