"""Hours in minutes: clients of all kinds beside connections that come and go by the thousand."""
