"""The benchmark: each row on Barnabas and on Apache Kafka, in turns, on the same machine in the same run."""
