"""Authorization: ACLs as Kafka's StandardAuthorizer reads them, and roles on top."""
