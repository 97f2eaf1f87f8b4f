"""Interactive queries: the stores of an application, as of its last committed batch."""
