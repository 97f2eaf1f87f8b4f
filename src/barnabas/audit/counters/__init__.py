"""Counters: count records in memory, and send the counts to the audit topic."""
