"""The pytest plugin: fixtures that start a broker for a test."""
