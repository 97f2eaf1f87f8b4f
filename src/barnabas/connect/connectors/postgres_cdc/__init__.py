"""Change capture from PostgreSQL: a snapshot, then logical decoding by pgoutput, as Debezium's connector."""
