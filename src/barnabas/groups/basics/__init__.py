"""What all kinds of groups share: outcomes, records, deadlines, member ids, settings."""
