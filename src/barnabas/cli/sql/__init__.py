"""SQL over topics: the server, the shell, files with statements."""
