"""A client of Kafka's protocol: one core, and faces for asyncio and for code that blocks.

For tools, services, nodes and Spark. It needs nothing but Kafka's protocol, so it serves Apache Kafka too.
"""
