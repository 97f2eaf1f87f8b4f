"""PRINT: records of a topic as text, their formats guessed."""
