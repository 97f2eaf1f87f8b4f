"""Seeing a cluster: outlets of metrics and traces, dashboards, lag, alerts."""
