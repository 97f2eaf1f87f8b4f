"""The base of every application on Spark: sessions, applications under a supervisor, a catalogue, leases.

Pipelines stand on it, and so does every other application on Spark. Imports nothing of them. docs/engine.md
explains it.
"""
