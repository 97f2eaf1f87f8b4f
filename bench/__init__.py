"""The benchmark: measures each row on Barnabas and on Apache Kafka alternately, on one machine in one run."""
