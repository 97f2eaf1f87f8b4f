"""The REST proxy: Confluent's APIs v2 and v3 over any Kafka cluster, live tails of topics."""
