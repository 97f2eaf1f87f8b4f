"""Databases as connectors see them: addresses, drivers, dialects, catalogues of tables and columns."""
