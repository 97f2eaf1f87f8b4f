"""The interpreter: runs a plan's sub-topology record by record, by Kafka Streams' rules."""
