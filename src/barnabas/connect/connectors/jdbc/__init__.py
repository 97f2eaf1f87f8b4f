"""Tables of databases to topics and back, with the settings of Confluent's JDBC connectors."""
