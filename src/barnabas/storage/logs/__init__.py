"""One partition's log: opened, recovered, appended to, read, cut, retained."""
