"""The replicated state of one partition, without I/O: producers, leader epochs, in-sync replicas, fetch
sessions."""
