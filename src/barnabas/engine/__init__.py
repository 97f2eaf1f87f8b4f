"""What any application on Spark needs: sessions, supervised processes, schedules, locks, a timeline, secrets.

Pipelines stand on it, and so does every other application on Spark. Imports nothing of them.
"""
