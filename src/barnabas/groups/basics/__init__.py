"""What all kinds of groups need: outcomes, records, deadlines, member ids, settings."""
