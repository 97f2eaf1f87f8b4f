"""Workers that share connectors: group protocol, assignments, internal topics, requests between workers."""
