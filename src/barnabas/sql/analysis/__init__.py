"""Statements become plans: what a statement means, checked against a metastore and facts from outside."""
