"""Targets of alerts: mail, webhooks, Slack, PagerDuty, Alertmanager. One module for each form of message."""
