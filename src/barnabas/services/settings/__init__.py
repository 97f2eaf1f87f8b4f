"""Settings of services in Confluent's names: tables, checks, listeners, properties of clients."""
