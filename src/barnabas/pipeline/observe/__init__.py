"""What people and monitoring see of a run: status, metrics, the report, recorded work."""
