"""Records that Kafka 4.3.1 keeps in its internal topics and files: one module a topic."""
