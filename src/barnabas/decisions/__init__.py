"""The life of a decision: made in order, appended, applied, and responded to when it is committed."""
