"""The command line: one module for each tool. `main` imports only the tool that it runs."""
