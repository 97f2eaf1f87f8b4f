"""The declarations: one module an area, one row a setting; nothing here but data."""
