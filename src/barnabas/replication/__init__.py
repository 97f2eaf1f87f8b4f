"""One partition's replicated state, pure: producers, leader epochs, in-sync replicas; and fetch sessions."""
