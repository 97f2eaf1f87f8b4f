"""The shell: statements typed by people, sent to a server, their results shown."""
