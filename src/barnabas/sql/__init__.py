"""SQL over topics: ksqlDB's statements, its REST API, a shell."""
