"""Requests, responses and other data of Kafka 4.3.1's protocol: one module an API, imported by need."""
