"""Consumer instances: members of groups that live in this proxy between requests."""
