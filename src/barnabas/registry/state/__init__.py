"""Subjects, versions, ids, configurations and modes: decided as records, applied from records."""
