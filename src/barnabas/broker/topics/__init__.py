"""Topics as clients ask for them: created on demand, and encoded for Metadata responses."""
