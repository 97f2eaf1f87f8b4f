"""The lag service: clusters read through Kafka's protocol, Burrow's API and metrics over HTTP."""
