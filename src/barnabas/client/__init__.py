"""An asynchronous client on our own protocol: connections, cluster, admin, and a light producer and consumer.

For tools, services and nodes. Speaks only Kafka's protocol, so it serves Apache Kafka clusters just as well.
"""
