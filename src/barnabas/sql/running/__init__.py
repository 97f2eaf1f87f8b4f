"""The engine: statements carried out on brokers and on Spark."""
