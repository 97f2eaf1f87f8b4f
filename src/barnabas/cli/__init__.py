"""The command line: one module a tool, each under Kafka's name too. `main` imports only the one asked for."""
