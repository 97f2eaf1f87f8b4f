"""Outlets: reporters that send a node's metrics to OpenTelemetry, Graphite, StatsD and CloudWatch."""
