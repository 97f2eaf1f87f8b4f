"""Seeing a cluster: outlets of metrics and traces, MBeans in Jolokia's form, dashboards and rules, lag."""
