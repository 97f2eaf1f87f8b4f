"""What any application on Spark needs: sessions, supervised processes, schedules, locks, a timeline, secrets.

Imports nothing else of pipelines.
"""
