"""Tools that measure producing, consuming and latency."""
