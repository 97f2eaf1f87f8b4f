"""Records of Kafka 4.3.1's internal topics and files, one module for each topic."""
