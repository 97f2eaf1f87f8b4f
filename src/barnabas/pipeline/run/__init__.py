"""The processes of a pipeline: started, supervised, and the work that each of them does."""
