"""The topic that holds the registry's records: made, checked, read, and written by one primary at a time."""
