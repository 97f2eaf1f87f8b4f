"""Change capture from MySQL and MariaDB: a snapshot, then the binary log, as Debezium's connectors."""
