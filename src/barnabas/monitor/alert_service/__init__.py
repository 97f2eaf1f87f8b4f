"""Alerts as a service: it looks at clusters from time to time, tells people, and keeps a history."""
