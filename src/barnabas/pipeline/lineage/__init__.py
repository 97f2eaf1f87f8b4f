"""Lineage: which source, table and column everything comes from; as OpenLineage events and as a picture."""
