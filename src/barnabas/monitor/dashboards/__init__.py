"""Dashboards for Grafana and rules for Prometheus, from one description of panels in Python."""
