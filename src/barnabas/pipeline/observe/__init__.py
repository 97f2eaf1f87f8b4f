"""The view of people and monitoring on a run: status, metrics, the report, recorded work."""
